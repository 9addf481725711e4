package messages

import (
	"log/slog"
	"reflect"
	"strings"
	"time"
)

// durationAttr returns a duration as JSON has it.
func durationAttr(name string, d time.Duration) slog.Attr { return slog.String(name, d.String()) }

// logValue returns an event for a log: its name, its key, its generation, and its fields. Durations are
// strings, as in JSON. A field with the tag log:"-", which has a server's own words, is left out, and so are
// the query and the fragment of a URI.
func logValue[E any, P interface {
	*E
	Event
}](e P) slog.Value {
	stamp, v := e.GetStamp(), reflect.ValueOf(e).Elem()
	all := []slog.Attr{slog.String("event", e.EventName()), slog.String("key", stamp.Key.String()), slog.Uint64("generation", stamp.Generation)}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous || field.Tag.Get("log") == "-" {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch value := v.Field(i); {
		case field.Type == reflect.TypeFor[time.Duration]():
			all = append(all, durationAttr(name, time.Duration(value.Int())))
		case name == "uri":
			all = append(all, slog.String(name, withoutSecrets(value.String())))
		case value.Kind() == reflect.String:
			all = append(all, slog.String(name, oneLine(value.String())))
		case value.Kind() == reflect.Slice:
			all = append(all, slog.Int(name, value.Len()))
		default:
			all = append(all, slog.Any(name, value.Interface()))
		}
	}
	return slog.GroupValue(all...)
}

// LogValue returns the fields of the failure that are set, for a log. The detail is one
// line of bounded length.
func (f *Failure) LogValue() slog.Value {
	if f == nil {
		return slog.StringValue(f.Error())
	}
	attrs := []slog.Attr{slog.String("code", string(f.Code))}
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	add("op", f.Op)
	add("target", oneLine(f.Target))
	if f.Key != (Key{}) {
		add("key", f.Key.String())
	}
	add("id", oneLine(f.ID))
	add("detail", oneLine(f.Detail))
	add("remedy", oneLine(f.Remedy))
	if f.Generation > 0 {
		attrs = append(attrs, slog.Uint64("generation", f.Generation), slog.Int("attempt", f.Attempt), slog.Bool("replayed", f.Replayed))
	}
	attrs = append(attrs, slog.Bool("mayHaveRun", f.MayHaveRun))
	if f.RetryAfter > 0 {
		attrs = append(attrs, durationAttr("retryAfter", f.RetryAfter))
	}
	add("supervisor", f.Supervisor)
	return slog.GroupValue(attrs...)
}
