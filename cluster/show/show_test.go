package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

func TestMain(m *testing.M) {
	if os.Getenv(memberVar) != "" { // the show starts this binary as its members
		main()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

func TestClusterHoldsItsClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	var out, log bytes.Buffer
	err := options{agents: 12}.run(t.Context(), &out, &log)
	stdout := out.String()
	require.NoError(t, err, stdout+log.String())
	for _, part := range []string{
		"three processes join a cluster", "member b is killed", "member b starts again", "member b leaves",
		"✓  every act was as announced", "✓  no call ran twice", "✓  every session kept its state", "✓  all members left, and no session was left",
		"0 of them although that was not allowed", "0 times it lost its state",
	} {
		require.Contains(t, stdout, part)
	}
	if canPause {
		require.Contains(t, stdout, "member c has dropped its sessions, and joined again")
	}
}

// The cluster with --listen shows its members on a page, and ends with its processes when it is stopped.
func TestClusterListensUntilItIsStopped(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	out, print := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		defer print.Close()
		ended <- options{agents: 6, listen: "127.0.0.1:0"}.run(ctx, print, print)
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var report strings.Builder
	var page string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		report.WriteString(line + "\n")
		if _, url, found := strings.Cut(line, "sessions are shown at "); found {
			page = url
		}
		if strings.Contains(line, "is killed") { // by now every agent has its session
			resp, err := client.Get(page + "?format=json")
			if err == nil {
				var got struct{ Snapshot messages.Snapshot }
				err = json.NewDecoder(resp.Body).Decode(&got)
				resp.Body.Close()
				if len(got.Snapshot.Members) == 0 {
					t.Error("the page shows no members")
				}
			}
			if err != nil {
				t.Error(err)
			}
			stop()
		}
	}
	require.NoError(t, <-ended, report.String())
	require.NotEmpty(t, page, report.String())
	require.Contains(t, report.String(), "✓  every call got exactly one reply")
	require.Contains(t, report.String(), "✓  no goroutine was left over")
	_, err := client.Get(page)
	require.Error(t, err, "the page is still served")
}

func TestMembersShareTheStoreOfTheShow(t *testing.T) {
	server := httptest.NewServer(serveStore(new(resume.Memory)))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	store := remoteStore(server.URL)
	key := messages.Key{Server: "web", Scope: "agent-1"}

	record, err := store.Load(t.Context(), key)
	require.NoError(t, err)
	require.Nil(t, record)
	require.NoError(t, store.Save(t.Context(), key, &mcpbridge.Record{Resume: mcpbridge.Resume{SessionID: "id"}, Generation: 2}))
	record, err = store.Load(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "id", record.SessionID)
	require.Equal(t, uint64(2), record.Generation)
	keys, err := store.Keys(t.Context())
	require.NoError(t, err)
	require.Equal(t, []messages.Key{key}, keys)
	require.NoError(t, store.Delete(t.Context(), key))
	keys, err = store.Keys(t.Context())
	require.NoError(t, err)
	require.Empty(t, keys)
	require.ErrorContains(t, store.Save(t.Context(), key, nil), "the record is nil")
}
