package shown

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// of returns a list of tools, each of the form "name=digest".
func of(texts ...string) List[string] {
	var tools []Tool[string]
	for _, text := range texts {
		name, digest, _ := strings.Cut(text, "=")
		tools = append(tools, Tool[string]{ID: name, Digest: digest, Value: text})
	}
	return Of(tools)
}

func text(l List[string]) string {
	var all []string
	for _, tool := range l.Tools() {
		all = append(all, tool.Value)
	}
	return strings.Join(all, " ")
}

func TestWhatWasShownStaysInFront(t *testing.T) {
	for _, test := range []struct {
		name, shown, now       string
		append, freeze, follow string
	}{
		{name: "the first list", now: "a=1 b=1", append: "a=1 b=1", freeze: "a=1 b=1", follow: "a=1 b=1"},
		{name: "a new tool", shown: "b=1 d=1", now: "a=1 b=1 c=1 d=1", append: "b=1 d=1 a=1 c=1", freeze: "b=1 d=1 a=1 c=1", follow: "a=1 b=1 c=1 d=1"},
		{name: "another definition", shown: "a=1 b=1", now: "a=2 b=1", append: "a=2 b=1", freeze: "a=1 b=1", follow: "a=2 b=1"},
		{name: "a tool that is gone", shown: "a=1 b=1", now: "b=1", append: "a=1 b=1", freeze: "a=1 b=1", follow: "b=1"},
		{name: "a tool that the user has removed", shown: "x=1 b=1", now: "b=1", append: "b=1", freeze: "b=1", follow: "b=1"},
		{name: "another order", shown: "a=1 b=1", now: "b=1 a=1", append: "a=1 b=1", freeze: "a=1 b=1", follow: "b=1 a=1"},
		{name: "a tool that is not to be shown", shown: "a=1", now: "a=1 hidden=1", append: "a=1", freeze: "a=1", follow: "a=1"},
		{name: "one that was shown before", shown: "hidden=1", now: "a=1 hidden=2", append: "hidden=2 a=1", freeze: "hidden=1 a=1", follow: "a=1"},
	} {
		now := Now[string]{
			Tools: of(strings.Fields(test.now)...),
			Adds:  func(t Tool[string]) bool { return t.ID != "hidden" },
			Keeps: func(t Tool[string]) bool { return t.ID != "x" },
		}
		for mode, want := range map[Mode]string{Append: test.append, Freeze: test.freeze, Follow: test.follow} {
			require.Equal(t, want, text(of(strings.Fields(test.shown)...).Next(mode, now)), "%s: %s", test.name, mode)
		}
	}
}

func TestOlderDefinitionDoesNotTakeThePlaceOfOneThatWasShown(t *testing.T) {
	at := func(digest string, seconds int64) List[string] {
		return Of([]Tool[string]{{ID: "a", Digest: digest, Value: digest, At: time.Unix(seconds, 0)}})
	}
	shown := at("2", 20)
	require.Equal(t, "2", text(shown.Next(Append, Now[string]{Tools: at("1", 10)})))
	require.Equal(t, "3", text(shown.Next(Append, Now[string]{Tools: at("3", 30)})))
	require.Equal(t, "a=1", text(shown.Next(Append, Now[string]{Tools: of("a=1")})), "it is not known when it was listed")
	require.False(t, shown.Redefined(Freeze, *at("1", 10).Find("a")))
	require.True(t, shown.Redefined(Freeze, *at("3", 30).Find("a")))
	require.True(t, shown.Ignores(at("1", 10)))
	require.False(t, shown.Ignores(at("3", 30)))
	confirmed := shown.Next(Append, Now[string]{Tools: at("2", 40)})
	require.Equal(t, "2", text(confirmed.Next(Append, Now[string]{Tools: at("1", 30)})), "it was confirmed after that")
}

func TestOnlyAFrozenDefinitionThatHasChangedIsChecked(t *testing.T) {
	shown, now := of("a=1", "b=1"), map[string]string{"a": "1", "b": "2", "c": "1"}
	for _, mode := range []Mode{Append, Freeze, Follow} {
		for id, digest := range now {
			require.Equal(t, mode == Freeze && id == "b", shown.Redefined(mode, Tool[string]{ID: id, Digest: digest}), "%s %s", mode, id)
		}
	}
}

// Whatever servers do, a list begins with the one before, as long as no definition changes, or if they are frozen.
func TestAListBeginsWithTheOneBefore(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, mode := range []Mode{Append, Freeze} {
		list := List[string]{}
		for range 1000 {
			var now []string
			for _, i := range r.Perm(20) {
				if r.IntN(3) > 0 {
					digest := 0
					if mode == Freeze {
						digest = r.IntN(3)
					}
					now = append(now, fmt.Sprintf("%d=%d", i, digest))
				}
			}
			next := list.Next(mode, Now[string]{Tools: of(now...), Keeps: func(Tool[string]) bool { return true }})
			require.Equal(t, text(list), text(of(strings.Fields(text(next))[:len(list.Tools())]...)))
			require.True(t, next.Equal(next.Next(mode, Now[string]{Tools: of(now...), Keeps: func(Tool[string]) bool { return true }})), "nothing more has changed")
			list = next
		}
		require.Len(t, list.Tools(), 20)
	}
}

func TestOnlySoManyToolsStayThatNoServerHas(t *testing.T) {
	list := List[string]{}
	for i := range 3 * maxGone {
		list = list.Next(Append, Now[string]{Tools: of(fmt.Sprintf("%d=1", i)), Keeps: func(Tool[string]) bool { return true }})
	}
	require.Len(t, list.Tools(), maxGone+1)
	require.NotNil(t, list.Find(fmt.Sprint(3*maxGone-2)), "the newest stay")
}
