// Command decode measures what a call of a small tool allocates, in memory and over HTTP, beside
// what decoding the same answer allocates. The servers allocate next to nothing.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	calls    = 500
	discover = `"supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":0,"cacheScope":"public"`
	answer   = `{"jsonrpc":"2.0","id":%s,"result":{` + discover + `,"capabilities":{},"content":[{"type":"text","text":"hello"}]}}`
)

var id = regexp.MustCompile(`"id":(\d+)`)

// local is an http.RoundTripper that answers with a JSON body. It stands for the network.
type local struct{}

func (local) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	found := id.FindSubmatch(body)
	if found == nil {
		return &http.Response{StatusCode: http.StatusAccepted, Body: http.NoBody}, nil
	}
	said := io.NopCloser(strings.NewReader(fmt.Sprintf(answer, found[1])))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: said}, nil
}

// pipe answers what comes over a pipe.
func pipe(conn net.Conn) {
	for buffer := make([]byte, 1<<16); ; {
		n, err := conn.Read(buffer) // a message, as long as the client writes it at once
		if err != nil {
			return
		}
		if found := id.FindSubmatch(buffer[:n]); found != nil {
			fmt.Fprintf(conn, answer+"\n", found[1])
		}
	}
}

// measure returns the bytes and the time of one run of f.
func measure(f func() error) (bytes int, took time.Duration) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range calls {
		if err := f(); err != nil {
			log.Fatal(err)
		}
	}
	took = time.Since(start) / calls
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc-before.TotalAlloc) / calls, took
}

func main() {
	near, far := net.Pipe()
	go pipe(far)
	most := 0
	for _, over := range []struct {
		name      string
		transport mcp.Transport
	}{
		{"memory", &mcp.IOTransport{Reader: near, Writer: near}},
		{"HTTP", &mcp.StreamableClientTransport{Endpoint: "http://local", HTTPClient: &http.Client{Transport: local{}}}},
	} {
		ctx := context.Background()
		session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, over.transport, nil)
		if err != nil {
			log.Fatal(err)
		}
		bytes, took := measure(func() error {
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hello"})
			return err
		})
		session.Close()
		most = max(most, bytes)
		fmt.Printf("%-8s a call allocates %7d bytes and takes %v\n", over.name+":", bytes, took)
	}
	body := []byte(fmt.Sprintf(answer, "1"))
	bytes, took := measure(func() error {
		var msg struct {
			Result struct {
				Content []struct{ Type, Text string }
			}
		}
		return json.Unmarshal(body, &msg)
	})
	fmt.Printf("decoding such an answer in place allocates %d bytes and takes %v\n", bytes, took)
	if most > 1<<16 {
		fmt.Println("still so: a call with an answer of 200 bytes allocates more than 64 KB")
		return
	}
	fmt.Println("mended: a call allocates less than 64 KB")
}
