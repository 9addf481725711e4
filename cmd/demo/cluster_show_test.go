package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/cli"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

func TestClusterHoldsItsClaims(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	status, stdout, stderr := run("cluster", "--agents", "12")
	require.Equal(t, cli.ExitOK, status, stdout+stderr)
	for _, part := range []string{
		"three processes join a cluster", "member b is killed", "member b starts again", "member b leaves",
		"ok        every act was as announced", "ok        no call ran twice", "ok        every session kept its state", "ok        all members left, and no session was left",
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
	program := newProgram()
	program.Out, program.Err = print, print
	show := &clusterCmd{Agents: 6, Listen: "127.0.0.1:0"}
	ended := make(chan error, 1)
	go func() {
		defer print.Close()
		ended <- show.run(ctx, program)
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
	require.Contains(t, report.String(), "ok        every call got exactly one reply")
	require.Contains(t, report.String(), "ok        no goroutine was left over")
	_, err := client.Get(page)
	require.Error(t, err, "the process of member a still runs")
}

func TestMembersShareTheStoreOfTheShow(t *testing.T) {
	server := httptest.NewServer(serveStore(resume.NewMemory()))
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
