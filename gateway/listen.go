package gateway

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
)

// listenMembers are the members of a filter, by the notification that each is for.
var listenMembers = map[string]string{
	"notifications/tools/list_changed": "toolsListChanged", "notifications/prompts/list_changed": "promptsListChanged",
	"notifications/resources/list_changed": "resourcesListChanged",
}

// listen answers subscriptions/listen: it says what the client gets, and sends that until the client ends the request.
func (c *client) listen(r *mcpserver.Request) (any, error) {
	wanted := r.Members()["notifications"]
	if len(wanted) == 0 || wanted[0] != '{' {
		return nil, mcpserver.Invalid("notifications: is missing, or no object")
	}
	filter := mcpserver.ObjectOf(wanted)
	var uris []string
	if filter["resourceSubscriptions"] != nil && json.Unmarshal(filter["resourceSubscriptions"], &uris) != nil {
		return nil, mcpserver.Invalid("notifications.resourceSubscriptions: must be a list of URIs")
	}
	r.Pass()
	l := &listener{r: r}
	honoured := mcpserver.Object{}
	for method, member := range listenMembers {
		if string(filter[member]) == "true" {
			l.methods = append(l.methods, method)
			honoured.With(member, true)
		}
	}
	c.listens.add(l)
	defer c.stopListening(l)
	if len(uris) > 0 {
		honoured.With("resourceSubscriptions", c.watchFor(l, uris))
	}
	c.lookForChanges(l)
	c.listens.begin(l, func() {
		l.send(c.Client, "notifications/subscriptions/acknowledged", mcpserver.Object{}.With("notifications", honoured))
	})
	<-r.Context.Done()
	return mcpserver.Ended(r), nil
}

// watchFor subscribes to resources for a listen, and returns those that their servers have accepted in time: others wait meanwhile.
func (c *client) watchFor(l *listener, uris []string) []string {
	c.listens.subscribing.Lock()
	defer c.listens.subscribing.Unlock()
	watched := []string{}
	ctx, cancel := context.WithTimeout(l.r.Context, listPatience)
	defer cancel()
	for _, uri := range uris {
		if slices.Contains(watched, uri) {
			continue
		}
		c.listens.watch(l, uri) // before the answer: an update may come before it
		if _, err := c.subscribe(l.r.Detach(ctx, l.r.Message), mcpserver.Object{}.With("uri", uri)); err != nil {
			c.listens.unwatch(l, uri)
			continue
		}
		watched = append(watched, uri)
	}
	return watched
}

// lookForChanges has the lists known whose changes a listen is told of: they are compared.
func (c *client) lookForChanges(l *listener) {
	for _, s := range c.servers() {
		for method, list := range s.lists {
			if slices.Contains(l.methods, kinds[method].changed) {
				list.look() //nolint:errcheck // a request for the list says why there is none
				list.show()
			}
		}
	}
}

// stopListening ends a listen, and the subscriptions that no other one has.
func (c *client) stopListening(l *listener) {
	c.listens.remove(l)
	if len(l.uris) == 0 {
		return
	}
	go func() {
		c.listens.subscribing.Lock()
		defer c.listens.subscribing.Unlock()
		ctx, cancel := context.WithTimeout(c.ctx, listPatience)
		defer cancel()
		for _, uri := range l.uris {
			if !c.listens.isWatched(uri) {
				c.unsubscribe(l.r.Detach(ctx, l.r.Message), mcpserver.Object{}.With("uri", uri)) //nolint:errcheck // nobody gets what still comes
			}
		}
	}()
}
