package outbound

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

const (
	// maxCookies bounds how many cookies a server can set in one session.
	maxCookies = 64
	// maxCookie bounds the name and the value of a cookie together, in bytes, as browsers do.
	maxCookie = 4096
)

// cookies are the cookies of one session. Balancers often use a cookie to send a session to the
// server that knows it. The jar needs no list of public suffixes, because the bridge sends requests to one host only.
type cookies struct {
	client *Client
	sent   redact.Recent // their values

	mu       sync.Mutex
	jar      http.CookieJar  // nil until there is a cookie
	set      map[string]bool // the cookies that the server has set, by name, domain and path
	restored map[string]bool // the names of the cookies of a record, which has no paths
}

// current returns the jar, or nil if there is none.
func (c *cookies) current() http.CookieJar {
	if c.client.Config.NoCookies {
		return nil
	}
	if client := c.client.Config.HTTPClient; client != nil && client.Jar != nil {
		return client.Jar
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jar
}

// onto returns a request with its cookies.
func (c *cookies) onto(req *http.Request) *http.Request {
	jar := c.current()
	if jar == nil {
		return req
	}
	toSend := jar.Cookies(req.URL)
	if len(toSend) == 0 {
		return req
	}
	r := *req
	r.Header = req.Header.Clone()
	for _, cookie := range toSend {
		c.hide(cookie)
		r.AddCookie(cookie)
	}
	return &r
}

// take keeps the cookies that a response sets.
func (c *cookies) take(from *url.URL, resp *http.Response) {
	set := resp.Cookies()
	if len(set) == 0 || c.client.Config.NoCookies {
		return
	}
	if client := c.client.Config.HTTPClient; client != nil && client.Jar != nil {
		for _, cookie := range set {
			c.hide(cookie)
		}
		client.Jar.SetCookies(from, set)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cookie := range set {
		id := cookie.Name + ";" + cookie.Domain + ";" + cookie.Path + ";" + path.Dir(from.Path)
		if len(cookie.Name)+len(cookie.Value) > maxCookie || len(c.set) == maxCookies && !c.set[id] {
			continue
		}
		c.open()
		c.set[id] = true
		if c.restored[cookie.Name] {
			delete(c.restored, cookie.Name)
			c.jar.SetCookies(c.client.URL, []*http.Cookie{{Name: cookie.Name, MaxAge: -1}})
		}
		c.hide(cookie)
		c.jar.SetCookies(from, []*http.Cookie{cookie})
	}
}

// open makes the jar if there is none. The lock is held.
func (c *cookies) open() {
	if c.jar == nil {
		c.jar, _ = cookiejar.New(nil) // which does not fail
		c.set = map[string]bool{}
	}
}

// hide keeps the value of a cookie out of error texts.
func (c *cookies) hide(cookie *http.Cookie) {
	if len(cookie.Value) >= redact.MinSecret {
		c.sent.Add(cookie.Value, maxRecent)
	}
}

// record returns the cookies of the session in the form of a Cookie header, or nothing if they are in
// the jar of the user.
func (c *cookies) record() string {
	c.mu.Lock()
	jar := c.jar
	c.mu.Unlock()
	if jar == nil {
		return ""
	}
	header := http.Request{Header: http.Header{}}
	for _, cookie := range jar.Cookies(c.client.URL) {
		header.AddCookie(cookie)
	}
	return header.Header.Get("Cookie")
}

// restore puts the cookies of a record into the jar.
func (c *cookies) restore(record string) {
	kept, err := http.ParseCookie(record)
	if err != nil || c.client.Config.NoCookies || c.current() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restored = map[string]bool{}
	for _, cookie := range kept[:min(len(kept), maxCookies)] {
		c.open()
		c.restored[cookie.Name] = true
		c.hide(cookie)
	}
	if c.jar != nil {
		c.jar.SetCookies(c.client.URL, kept[:min(len(kept), maxCookies)])
	}
}
