package benchmarks

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
)

// floor posts the bytes of a call again and again, with a new id each time, and reads the answer
// without decoding it: the time that no client can fall below.
type floor struct {
	*bare      // has made the call, and keeps the session
	sent       *http.Request
	head, tail []byte // of the body, around the id
	id         atomic.Int64
}

var idOfCall = regexp.MustCompile(`"id":\d+`)

func openFloor(r route) (client, error) { return newFloor(r.server.URL, "") }

// newFloor opens a session at a URL. An empty protocol version is the SDK's choice.
func newFloor(url, version string) (client, error) {
	record := &lastPost{inner: tuned.Transport}
	r := route{open: dialsHTTP(url, &http.Client{Transport: record}, false, version)}
	r.server.URL = url
	inner, err := openBare(r)
	if err != nil {
		return nil, err
	}
	if err := inner.call(context.Background(), oneKey); err != nil {
		return nil, err
	}
	at := idOfCall.FindIndex(record.body)
	if at == nil {
		return nil, fmt.Errorf("the call has no id: %s", record.body)
	}
	f := &floor{bare: inner.(*bare), sent: record.last, head: record.body[:at[0]], tail: record.body[at[1]:]}
	f.id.Store(1_000_000) // above those that the session has used
	return f, nil
}

func (f *floor) call(ctx context.Context, _ string) error {
	body := append(bytes.Clone(f.head), `"id":`...)
	body = append(strconv.AppendInt(body, f.id.Add(1), 10), f.tail...)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.server.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = f.sent.Header
	resp, err := tuned.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !bytes.Contains(answer[:min(200, len(answer))], []byte(`"result":`))) {
		return fmt.Errorf("%s: %.100s", resp.Status, answer)
	}
	return err
}

// lastPost is a round tripper that keeps the last POST.
type lastPost struct {
	inner http.RoundTripper
	last  *http.Request
	body  []byte
}

func (p *lastPost) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
		p.last, p.body = req, body
	}
	return p.inner.RoundTrip(req)
}
