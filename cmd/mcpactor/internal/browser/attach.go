package browser

import (
	"net/http"
	"net/url"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Logins are those of the servers of a configuration. A server keeps its login when the configuration is loaded again.
type Logins struct {
	// Options returns how a person logs in to a server.
	Options func(server string) Options
	made    map[[2]string]*mcpbridge.OAuthCredentials
}

// Attach gives each server at a URL its login, unless the server has credentials of its own or its login is off.
func (l *Logins) Attach(servers []mcpbridge.Server) {
	if l.made == nil {
		l.made = map[[2]string]*mcpbridge.OAuthCredentials{}
	}
	for i := range servers {
		srv := servers[i]
		if !mayLogIn(&srv) {
			continue
		}
		id := [2]string{srv.Name, srv.URL}
		o := l.Options(srv.Name)
		if o.Off {
			continue
		}
		if l.made[id] == nil {
			one, err := New(srv.URL, o)
			if err != nil { // there is no folder for logins
				continue
			}
			l.made[id] = mcpbridge.OAuth(one)
		}
		srv.Auth = l.made[id]
		srv.ListClass = func(messages.Key) string { return "login" } // it is the same for all keys, and so is what they see
		if srv.Validate() == nil {                                   // over plain http there are no credentials
			servers[i] = srv
		}
	}
}

// Attached reports whether a server has its login from [Logins.Attach], which alone sets both fields: a grant in a file sets one.
func Attached(srv *mcpbridge.Server) bool { return srv.Auth != nil && srv.ListClass != nil }

// mayLogIn reports whether a server has a URL and no other credentials. Headers may be some, unless there is a login.
func mayLogIn(srv *mcpbridge.Server) bool {
	if srv.URL == "" || srv.Auth != nil || srv.PerKey != nil || srv.ListClass != nil || HasCredentials(srv) {
		return false
	}
	_, kept := Kept(srv.URL)
	return kept || len(srv.Headers) == 0
}

// HasCredentials reports whether the configuration of a server has what a login would take the place of.
func HasCredentials(srv *mcpbridge.Server) bool {
	if u, err := url.Parse(srv.URL); err != nil || u.User != nil {
		return true
	}
	for name := range srv.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}
