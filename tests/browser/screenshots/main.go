// Command screenshots makes the pictures of the page in the documents. It runs a supervisor
// on servers with faults, and Chromium.
//
//	go run ./screenshots ../../docs
package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/browser/internal/site"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: screenshots DIRECTORY")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	s, err := site.Start(supervisor.Config{
		MaxSessions: 100, Tenant: supervisor.ScopePrefix("/"), CallTimeout: 30 * time.Second, DrainTimeout: 100 * time.Millisecond,
	}, debug.Config{Actions: true}, "browser", "search", "tickets")
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := happen(ctx, s); err != nil {
		return err
	}
	for _, scheme := range []string{"light", "dark"} {
		if err := take(filepath.Join(dir, "debug-"+scheme+".png"), s.URL+"?sort=state", scheme, 1180, 920); err != nil {
			return err
		}
	}
	return take(filepath.Join(dir, "debug-session.png"), s.URL+"session?server=browser&scope=acme/1042", "light", 1180, 640)
}

// scope returns a scope of one of three tenants.
func scope(i int) string {
	return fmt.Sprintf("%s/%d", []string{"acme", "globex", "initech"}[i%3], 1042+i*7)
}

// happen makes something happen on all servers.
func happen(ctx context.Context, s *site.Site) error {
	for i := range 16 {
		for server := range s.Servers {
			if err := s.Call(ctx, server, scope(i), "count/ro"); err != nil {
				return err
			}
		}
	}
	for round := range 6 { // calls that take different times
		for _, server := range []string{"browser", "search"} {
			remove := s.Servers[server].Inject("tools/call", faults.Delay(time.Duration(1<<round)*3*time.Millisecond))
			for range 3 << (5 - round) {
				for i := range 4 {
					if err := s.Call(ctx, server, scope(i), "count/ro"); err != nil {
						return err
					}
				}
			}
			remove()
		}
	}
	first := messages.Key{Server: "browser", Scope: scope(0)}
	for range 3 { // sessions that expire, and are rebuilt
		s.Servers["browser"].Expire(faults.Expiries()[0])
		for i := range 9 {
			if err := s.Call(ctx, "browser", scope(i), "count/ro"); err != nil {
				return err
			}
		}
		if _, err := s.Supervisor.Client().Do(ctx, &messages.Ping{Header: messages.To(first.Server, first.Scope)}); err != nil {
			return err
		}
		select {
		case <-time.After(1500 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	remove := s.Servers["browser"].Inject("tools/call", faults.Times(1, faults.CutAnswer(0))) // a call that is lost, and replayed
	if err := s.Call(ctx, "browser", scope(0), "count/ro"); err != nil {
		return err
	}
	remove()
	if _, err := s.Supervisor.Client().Do(ctx, &messages.Pin{Key: messages.Key{Server: "search", Scope: scope(2)}}); err != nil {
		return err
	}
	s.Servers["search"].Inject("initialize", faults.Refuse(401, "no"))
	s.Servers["search"].Inject("server/discover", faults.Refuse(401, "no"))
	_ = s.Call(ctx, "search", "acme/2001", "count") // it is given up
	s.Servers["tickets"].Stop()
	for i := range 5 { // calls that wait for a server that is down, and calls that run
		go s.Call(ctx, "tickets", scope(i), "count/ro") //nolint:errcheck // they end with the program
		go s.Call(ctx, "browser", scope(i), "wait")     //nolint:errcheck // likewise
	}
	return nil
}

// take takes a screenshot of a page.
func take(file, url, scheme string, width, height int) error {
	ctx, cancel, err := site.Browser(width, height)
	if err != nil {
		return err
	}
	defer cancel()
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), int64(height))); err != nil {
		return err
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		return err
	}
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](`document.getElementById("live").textContent === "Live"`)); err != nil {
		return err
	}
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return write(file, picture)
}

// write writes a picture with as few bytes as package png can.
func write(file string, picture []byte) error {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return err
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, decoded); err != nil {
		return err
	}
	return os.WriteFile(file, small.Bytes(), 0o644)
}
