package messages

import (
	"encoding/json"
	"fmt"
	"time"
)

// duration is a time.Duration as JSON: a string such as "1.5s". All messages have their
// durations in this form.
type duration time.Duration

// MarshalJSON returns a string.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads a string.
func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("a duration is a string such as %q: %w", "1.5s", err)
	}
	parsed, err := time.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// The types below have a field that is a duration. Their other fields are as their tags
// say.

// MarshalJSON returns an object, without the cause.
func (f Failure) MarshalJSON() ([]byte, error) {
	type plain Failure
	return json.Marshal(struct {
		plain
		RetryAfter duration `json:"retryAfter,omitzero"`
	}{plain(f), duration(f.RetryAfter)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (f *Failure) UnmarshalJSON(data []byte) error {
	type plain Failure
	return json.Unmarshal(data, &struct {
		*plain
		RetryAfter *duration `json:"retryAfter"`
	}{(*plain)(f), (*duration)(&f.RetryAfter)})
}

// MarshalJSON returns an object.
func (m MemberSnapshot) MarshalJSON() ([]byte, error) {
	type plain MemberSnapshot
	return json.Marshal(struct {
		plain
		Lease duration `json:"lease,omitzero"`
		Hop   duration `json:"hop,omitzero"`
	}{plain(m), duration(m.Lease), duration(m.Hop)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (m *MemberSnapshot) UnmarshalJSON(data []byte) error {
	type plain MemberSnapshot
	return json.Unmarshal(data, &struct {
		*plain
		Lease *duration `json:"lease"`
		Hop   *duration `json:"hop"`
	}{(*plain)(m), (*duration)(&m.Lease), (*duration)(&m.Hop)})
}

// MarshalJSON returns an object.
func (e SessionOpened) MarshalJSON() ([]byte, error) {
	type plain SessionOpened
	return json.Marshal(struct {
		plain
		Elapsed duration `json:"elapsed"`
	}{plain(e), duration(e.Elapsed)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (e *SessionOpened) UnmarshalJSON(data []byte) error {
	type plain SessionOpened
	return json.Unmarshal(data, &struct {
		*plain
		Elapsed *duration `json:"elapsed"`
	}{(*plain)(e), (*duration)(&e.Elapsed)})
}

// MarshalJSON returns an object.
func (e SessionRestarting) MarshalJSON() ([]byte, error) {
	type plain SessionRestarting
	return json.Marshal(struct {
		plain
		Delay duration `json:"delay"`
	}{plain(e), duration(e.Delay)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (e *SessionRestarting) UnmarshalJSON(data []byte) error {
	type plain SessionRestarting
	return json.Unmarshal(data, &struct {
		*plain
		Delay *duration `json:"delay"`
	}{(*plain)(e), (*duration)(&e.Delay)})
}

// MarshalJSON returns an object.
func (e SessionRestarted) MarshalJSON() ([]byte, error) {
	type plain SessionRestarted
	return json.Marshal(struct {
		plain
		Elapsed  duration `json:"elapsed"`
		Lifetime duration `json:"lifetime"`
	}{plain(e), duration(e.Elapsed), duration(e.Lifetime)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (e *SessionRestarted) UnmarshalJSON(data []byte) error {
	type plain SessionRestarted
	return json.Unmarshal(data, &struct {
		*plain
		Elapsed  *duration `json:"elapsed"`
		Lifetime *duration `json:"lifetime"`
	}{(*plain)(e), (*duration)(&e.Elapsed), (*duration)(&e.Lifetime)})
}

// MarshalJSON returns an object.
func (e SessionClosed) MarshalJSON() ([]byte, error) {
	type plain SessionClosed
	return json.Marshal(struct {
		plain
		Lifetime duration `json:"lifetime"`
	}{plain(e), duration(e.Lifetime)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (e *SessionClosed) UnmarshalJSON(data []byte) error {
	type plain SessionClosed
	return json.Unmarshal(data, &struct {
		*plain
		Lifetime *duration `json:"lifetime"`
	}{(*plain)(e), (*duration)(&e.Lifetime)})
}

// MarshalJSON returns an object.
func (h Histogram) MarshalJSON() ([]byte, error) {
	type plain Histogram
	return json.Marshal(struct {
		plain
		Sum duration `json:"sum"`
	}{plain(h), duration(h.Sum)})
}

// UnmarshalJSON reads what MarshalJSON has returned.
func (h *Histogram) UnmarshalJSON(data []byte) error {
	type plain Histogram
	return json.Unmarshal(data, &struct {
		*plain
		Sum *duration `json:"sum"`
	}{(*plain)(h), (*duration)(&h.Sum)})
}
