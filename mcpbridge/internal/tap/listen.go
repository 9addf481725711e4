package tap

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// listenWait bounds the wait for the answer to subscriptions/listen.
const listenWait = 3 * time.Second

// listen writes subscriptions/listen, and waits until the server has acknowledged or refused it. The SDK does not wait. What changes
// before the server has handled it is announced to nobody.
func (c *connection) listen(ctx context.Context, req *jsonrpc.Request) error {
	t, answered := c.tap, make(chan struct{})
	t.mu.Lock()
	t.listens[req.ID] = answered
	t.mu.Unlock()
	defer t.listened(req.ID)
	if err := c.send(ctx, req); err != nil {
		return err
	}
	select {
	case <-answered:
	case <-time.After(min(listenWait, t.session.ConnectTimeout/3)): // the rest is for the handshake
	case <-t.over:
	case <-t.session.Cut.Done():
	}
	return nil
}

// acknowledged notes the acknowledgement of a subscriptions/listen.
func (t *Tap) acknowledged(raw json.RawMessage) {
	var params mcp.SubscriptionsAcknowledgedParams
	_ = json.Unmarshal(raw, &params) // without an id it acknowledges nothing
	onWire, _ := jsonrpc.MakeID(params.Meta[mcp.MetaKeySubscriptionID])
	if number, own := t.answers.IDs.Number(onWire); own {
		id, _ := jsonrpc.MakeID(float64(number))
		t.listened(id)
	}
}

// listened ends the wait for the answer to the request with an id, if it is a subscriptions/listen.
func (t *Tap) listened(id jsonrpc.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if answered := t.listens[id]; answered != nil {
		close(answered)
		delete(t.listens, id)
	}
}
