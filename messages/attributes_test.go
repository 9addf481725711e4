package messages

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttributesAreImmutable(t *testing.T) {
	from := map[string]string{"tenant": "acme", "run": "7"}
	a := NewAttributes(from)
	from["tenant"] = "other"
	b := a.With("tenant", "third").With("user", "ann")
	require.Equal(t, map[string]string{"tenant": "acme", "run": "7"}, maps.Collect(a.All()))
	require.Equal(t, map[string]string{"tenant": "third", "run": "7", "user": "ann"}, maps.Collect(b.All()))
	value, ok := b.Get("user")
	require.True(t, ok)
	require.Equal(t, "ann", value)
	_, ok = a.Get("user")
	require.False(t, ok)
	require.Equal(t, 2, a.Len())

	var none Attributes
	_, ok = none.Get("user")
	require.False(t, ok)
	require.Zero(t, none.Len())
	require.Equal(t, none, NewAttributes(nil))
	require.Equal(t, 1, none.With("x", "").Len())
	var keys []string
	for key := range b.All() {
		if keys = append(keys, key); len(keys) == 2 {
			break
		}
	}
	require.Equal(t, []string{"run", "tenant"}, keys, "in order")
}

func TestAttributesOutOfBoundsAreNamed(t *testing.T) {
	full := Attributes{}
	for i := range maxAttributes {
		full = full.With(fmt.Sprint(i), strings.Repeat("x", maxAttributeValue))
	}
	require.NoError(t, full.Validate())
	require.NoError(t, Attributes{}.With(strings.Repeat("k", maxAttributeKey), "Grüße").Validate())
	for want, a := range map[string]Attributes{
		"attributes: has 17 entries, at most 16 are allowed":                                          full.With("one more", ""),
		`attributes[""]: the key is empty`:                                                            Attributes{}.With("", "x"),
		`attributes["` + strings.Repeat("k", 64) + `"]: the key has 65 bytes, at most 64 are allowed`: Attributes{}.With(strings.Repeat("k", 65), ""),
		`attributes["a\nb"]: the key has a control character or invalid UTF-8`:                        Attributes{}.With("a\nb", ""),
		`attributes["tenant"]: the value has 257 bytes, at most 256 are allowed`:                      Attributes{}.With("tenant", strings.Repeat("x", 257)),
		`attributes["tenant"]: the value has a control character or invalid UTF-8`:                    Attributes{}.With("tenant", "s3cr3t\xff"),
	} {
		require.EqualError(t, a.Validate(), want)
	}
}

func TestAttributesAreNeverPrinted(t *testing.T) {
	const secret = "s3cr3t"
	call := &CallTool{Header: To("s", "a")}
	call.Attributes = NewAttributes(map[string]string{secret: secret})
	var log strings.Builder
	for _, logger := range []*slog.Logger{slog.New(slog.NewTextHandler(&log, nil)), slog.New(slog.NewJSONHandler(&log, nil))} {
		logger.Info("printed", "call", call, "header", &call.Header, "copy", *call, "value", call.Header, "attributes", call.Attributes)
	}
	fmt.Fprintf(&log, "%v %+v %s", call, call, call)
	fmt.Fprintf(&log, "%v %+v %#v %s", call.Attributes, call.Attributes, call.Attributes, call.Attributes)
	fmt.Fprintf(&log, "%v %+v %#v", call.Header, call.Header, call.Header)
	require.NotContains(t, log.String(), secret)
	require.Contains(t, log.String(), "1 attributes")
}

func TestAttributesAndTraceSurviveSerialization(t *testing.T) {
	h := To("s", "a")
	h.Attributes = NewAttributes(map[string]string{"tenant": "acme"})
	h.Trace = Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "vendor=value"}
	data, err := json.Marshal(h)
	require.NoError(t, err)
	var back Header
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, h, back)

	require.ErrorContains(t, json.Unmarshal([]byte(`{"":"x"}`), &back.Attributes), "the key is empty")
	require.ErrorContains(t, json.Unmarshal([]byte(`[1]`), &back.Attributes), "attributes: ")
	require.Equal(t, h.Attributes, back.Attributes)
}

func TestTraceThatIsNotW3CTraceContextIsNamed(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, trace := range []Trace{
		{},
		{Parent: parent},
		{Parent: "cc" + parent[2:] + "-what-the-future-brings"},
		{Parent: parent, State: "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE,,tenant@vendor=a b"},
		{Parent: parent, State: strings.Repeat("a=b,", 32)},
	} {
		require.NoError(t, trace.Validate(), "%v", trace)
	}
	for want, traces := range map[string][]Trace{
		"trace.parent: is not of the form": {
			{Parent: "x"},
			{Parent: parent + "\r\nX-Other: 1"},
			{Parent: parent + "-more"},
			{Parent: strings.ToUpper(parent)},
			{Parent: "cc" + parent[2:] + "-" + strings.Repeat("x", 100)},
		},
		"trace.parent: the version ff":         {{Parent: "ff" + parent[2:]}},
		"trace.parent: an id has only zeros":   {{Parent: "00-" + strings.Repeat("0", 32) + parent[35:]}, {Parent: parent[:36] + strings.Repeat("0", 16) + "-01"}},
		"trace.state: there is no":             {{State: "a=b"}},
		"trace.state: member 2 is not of the":  {{Parent: parent, State: "a=b,c"}, {Parent: parent, State: "a=b,c=d=e"}, {Parent: parent, State: "a=b,c=d\n"}, {Parent: parent, State: "a=b,C=d"}},
		"trace.state: has more than 32 member": {{Parent: parent, State: strings.Repeat("a=b,", 33)}},
	} {
		for _, trace := range traces {
			require.ErrorContains(t, trace.Validate(), want, "%q", trace)
		}
	}
}

func TestContextHasAttributesAndTrace(t *testing.T) {
	require.Zero(t, AttributesOf(t.Context()))
	require.Zero(t, TraceOf(t.Context()))
	a, trace := NewAttributes(map[string]string{"tenant": "acme"}), Trace{Parent: "p"}
	ctx := WithTrace(WithAttributes(t.Context(), a), trace)
	require.Equal(t, a, AttributesOf(ctx))
	require.Equal(t, trace, TraceOf(ctx))
	require.Zero(t, AttributesOf(WithAttributes(ctx, Attributes{})))
}
