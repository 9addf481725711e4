package handles

import (
	"cmp"
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// Of returns what a scope holds, or one of those that share it, the oldest first.
func (b *Book) Of(scope, holder string) (all []messages.HeldHandle) {
	matches := func(o Holder) bool { return o.Scope == scope && (holder == "" || o.Name == holder) }
	for k := range b.kinds() {
		for _, h := range k.sorted(func(h *Handle) bool { return h.state == held && h.isHeldBy(matches) }) {
			all = append(all, messages.HeldHandle{
				Key: h.By, Mint: k.Mint, Release: k.Release, Argument: k.Argument, Handle: h.ID,
				Shared: len(without(h.holders, matches)) > 0, Minted: h.Minted, Used: h.Used,
			})
		}
	}
	slices.SortFunc(all, func(x, y messages.HeldHandle) int {
		return cmp.Or(x.Minted.Compare(y.Minted), x.Key.Compare(y.Key), cmp.Compare(x.Handle, y.Handle))
	})
	return all
}

// maxListed bounds the handles that a snapshot names.
const maxListed = 100

// Snapshot returns what is known of the kinds of a server.
func (b *Book) Snapshot(server string) (all []messages.HandleSnapshot) {
	for _, declared := range b.Kinds(server) {
		k := b.servers[server].of[declared.Mint]
		one := messages.HandleSnapshot{Mint: k.Mint, Waiting: k.line.waiting, Max: k.line.most}
		for _, h := range k.sorted(func(*Handle) bool { return true }) {
			switch h.state {
			case held:
				one.Held++
			case releasing:
				one.Releasing++
			case left:
				if one.LeftCount++; one.LeftCount <= maxListed {
					one.Left = append(one.Left, messages.Left{Key: h.By, Handle: k.Mint, Reason: h.why})
				}
			}
		}
		for m := range k.mints {
			if m.state == lost {
				one.Unanswered++
			} else {
				one.Minting++
			}
		}
		all = append(all, one)
	}
	return all
}
