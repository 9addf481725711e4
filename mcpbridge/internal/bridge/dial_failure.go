package bridge

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// explainDial returns the error of a dial whose handshake failed with err. cause is the reason why the handshake was
// aborted, or nil.
func (c *conn) explainDial(ctx context.Context, cause error, ex *wire.Exchange, err error) *mcpbridge.Error {
	var aborted *mcpbridge.Error
	if errors.As(cause, &aborted) {
		return unavailable(aborted)
	}
	secrets := c.secrets()
	e := ex.Explain(ctx, err, "", secrets...)
	isNonsense := c.link != nil && c.link.Ended() != nil && !wire.IsEndOfStream(c.link.Ended())
	switch e.Class {
	case mcpbridge.Invalid, mcpbridge.ServerError, mcpbridge.Protocol, mcpbridge.Expired:
		if e.Status == 0 || e.Server != mcpbridge.Absent { // the server itself has refused, and not a front
			c.at.dialect.unlearn()
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e.Class, e.Detail = mcpbridge.Unavailable, "timed out while connecting"
		if c.IsMute.Load() {
			e.Detail += ": the event stream brings no bytes; does a proxy buffer it? (nginx: proxy_buffering off)"
		}
		if c.wroteText.Load() {
			e.Detail += ": the server writes text to stdout, and no answer"
			_, e.Quote = c.link.DescribeEnd()
		} else if c.at.Command != "" && c.link != nil && !ex.IsAnswered() {
			e.Detail += ": the process runs, and does not answer"
			_, e.Quote = c.link.DescribeEnd() // what it waits for may be on stderr
		}
	case c.link == nil:
		e.Class = mcpbridge.Unavailable
	case strings.Contains(err.Error(), unsupportedVersion):
		e.Class, e.Session, e.Server, e.Detail = mcpbridge.Protocol, mcpbridge.Alive, mcpbridge.Present, redact.Describe(err, secrets...)
	case isNonsense:
		e.Class = mcpbridge.Protocol
	}
	endIsKnown := false
	if c.link != nil && e.Class != mcpbridge.Cancelled && (e.Session == mcpbridge.Broken || isNonsense) {
		endIsKnown = c.describeEnd(e)
	}
	e.Server = presenceAfter(e, ex, err, c.link == nil || endIsKnown && e.Session == mcpbridge.Broken)
	if ctx.Err() == nil {
		e.Remedy = remedyFor(e, &c.at.Server)
	}
	return unavailable(e)
}

// presenceAfter returns what a handshake that failed with e has shown about the server. err is the error of the SDK. noProcess
// is true if the command of the server cannot be started, or if its process ended instead of answering.
func presenceAfter(e *mcpbridge.Error, ex *wire.Exchange, err error, noProcess bool) mcpbridge.Presence {
	refused, failed := ex.Outcome()
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case e.Class == mcpbridge.Unauthorized || e.Class == mcpbridge.Cancelled:
		return e.Server
	case e.Class == mcpbridge.Protocol:
		return max(e.Server, mcpbridge.Strange)
	case refused:
		return e.Server
	case failed:
		return mcpbridge.Present
	case noProcess,
		errors.As(err, &name) && name.IsNotFound, errors.As(err, &certificate), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return mcpbridge.Strange
	}
	return e.Server
}

// unavailable turns the error of a request of the handshake into that of the dial. A later dial may succeed after
// a refusal.
func unavailable(e *mcpbridge.Error) *mcpbridge.Error {
	if e.Class == mcpbridge.Cancelled {
		return e
	}
	dial := dial.AsError(e)
	if dial.Class == mcpbridge.Invalid || dial.Class == mcpbridge.ServerError {
		dial.Class = mcpbridge.Unavailable
	}
	return dial
}
