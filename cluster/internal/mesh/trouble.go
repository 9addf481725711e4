package mesh

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
)

// Troubles says of each member that cannot be sent to why that is, as far as the member shows it to this one. It may wait for a
// moment.
func (m *Mesh) Troubles() (all []string) {
	m.mu.Lock()
	links := slices.SortedFunc(maps.Values(m.links), func(a, b *Link) int { return cmp.Compare(a.to.Host, b.to.Host) })
	m.mu.Unlock()
	for _, l := range links {
		if text := l.trouble(); text != "" {
			all = append(all, l.to.Host+": "+text)
		}
	}
	return slices.Compact(all)
}

// troubleTime bounds how long a connection is asked why it fails.
const troubleTime = 100 * time.Millisecond

// trouble says why nothing can be sent, or returns "".
func (l *Link) trouble() string {
	l.mu.Lock()
	err := l.failed
	l.mu.Unlock()
	if l.invalid == nil && l.conn.GetState() == connectivity.TransientFailure { // the streams wait until it is over
		ctx, cancel := context.WithTimeout(l.ctx, troubleTime)
		defer cancel()
		_, err = l.conn.NewStream(ctx, &streamOf, Method)
	}
	switch s := status.Convert(err); {
	case err == nil:
		return ""
	case s.Code() == codes.PermissionDenied && l.to.ID != "":
		return "it does not know this member yet"
	case s.Code() == codes.PermissionDenied:
		return fmt.Sprintf("it refuses this member: it has another Config.Name than %q, or does not list %s", l.mesh.cfg.Cluster, l.from.Host)
	case stateOf(err).Version != 0:
		return fmt.Sprintf("it speaks version %d of the protocol between members, and this one %d", stateOf(err).Version, l.mesh.cfg.Version)
	default:
		text := fmt.Sprintf("%.300s", cmp.Or(s.Message(), s.Code().String())) // the other member may have written it
		if l.mesh.cfg.Credentials == nil && strings.Contains(text, "server preface") {
			text += "; it may need TLS, which is not set here"
		}
		return text
	}
}
