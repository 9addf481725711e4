package messages

import (
	"log/slog"
	"reflect"
	"regexp"
	"strings"
)

// named gives the event E its name.
type named[E any] struct {
	// Type is the name of the event in JSON.
	Type eventType[E] `json:"type"`
}

// EventName returns the name of the event: that of its type in snake case.
func (named[E]) EventName() string { return snakeCase(reflect.TypeFor[E]().Name()) }

// eventType is the name of the event E as text.
type eventType[E any] struct{}

// MarshalText returns the name.
func (eventType[E]) MarshalText() ([]byte, error) { return []byte(named[E]{}.EventName()), nil }

// UnmarshalText does nothing: whoever reads an event knows what it reads.
func (eventType[E]) UnmarshalText([]byte) error { return nil }

// hump is where a new word begins in the name of a type.
var hump = regexp.MustCompile(`([a-z])([A-Z])`)

func snakeCase(name string) string { return strings.ToLower(hump.ReplaceAllString(name, "${1}_$2")) }

// line returns an event as one line: its name, its key, and the rest of its value for a log.
func line[E any, P interface {
	*E
	Event
}](e P) string {
	words := []string{e.EventName(), e.GetStamp().Key.String()}
	for _, attr := range logValue(e).Group() {
		if attr.Key != "event" && attr.Key != "key" {
			words = append(words, attr.String())
		}
	}
	return strings.Join(words, " ")
}

// String returns the event as one line.
func (e *SessionOpened) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionOpened) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionExpired) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionExpired) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionLost) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionLost) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionRestarting) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionRestarting) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionRestarted) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionRestarted) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionGaveUp) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionGaveUp) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionEvicted) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionEvicted) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *HandleMinted) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *HandleMinted) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *HandleReleased) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *HandleReleased) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *HandleLost) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *HandleLost) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *HandleLeft) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *HandleLeft) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *SessionClosed) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *SessionClosed) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *CallReplayed) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *CallReplayed) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *TaskChanged) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *TaskChanged) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *OwnerTerminated) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *OwnerTerminated) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *CatalogueChanged) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *CatalogueChanged) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *ToolsChanged) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *ToolsChanged) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *PromptsChanged) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *PromptsChanged) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *ResourcesChanged) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *ResourcesChanged) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *ResourceUpdated) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *ResourceUpdated) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *ServerLog) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *ServerLog) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *ElicitationCompleted) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *ElicitationCompleted) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *CustomNotification) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *CustomNotification) LogValue() slog.Value { return logValue(e) }

// String returns the event as one line.
func (e *Progress) String() string { return line(e) }

// LogValue returns the event for a log.
func (e *Progress) LogValue() slog.Value { return logValue(e) }
