package mcpbridge

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCleanupIsCheckedWithItsServer(t *testing.T) {
	good := Server{
		Name: "a", Command: "docker", Args: []string{"run", "--name", "{session}", "image"},
		Cleanup: Cleanup{Command: "docker", Args: []string{"rm", "--force", "{session}"}},
	}
	require.NoError(t, good.Validate())
	for want, change := range map[string]func(*Server){
		"cleanup.command: is empty":                  func(s *Server) { s.Cleanup.Command = "" },
		"cleanup: is for servers with a command":     func(s *Server) { s.Command, s.URL = "", "https://example.com" },
		"cleanup.timeout: -1s is negative":           func(s *Server) { s.Cleanup.Timeout = -time.Second },
		"cleanup.args: none has {session}":           func(s *Server) { s.Cleanup.Args = []string{"prune"} },
		"args: none has {session}":                   func(s *Server) { s.Args = []string{"run", "image"} },
		"cleanup.args[1]: has a NUL character":       func(s *Server) { s.Cleanup.Args = []string{"{session}", "\x00"} },
		"cleanup.timeout: 1000000h0m0s is more than": func(s *Server) { s.Cleanup.Timeout = 1000000 * time.Hour },
	} {
		s := good
		change(&s)
		require.ErrorContains(t, s.Validate(), want)
	}
}

func TestWarningsNameWhatAContainerLacks(t *testing.T) {
	cleanup := Cleanup{Command: "docker", Args: []string{"rm", "--force", "{session}"}}
	for args, want := range map[string]string{
		"run --rm -i --init --name {session} image -t":          "",
		"--context x run -i --rm --init --name={session} image": "",
		"run --rm -ie A=b --init --name {session} image":        "",
		"run --rm -v /a:/b -i --init --name {session} image":    "",
		"run -v/a:/b --rm -i --init --name {session} image":     "",
		"run --rm --init --name {session} image -i":             "has no -i",
		"run --rm -it --init --name {session} image":            "has -t",
		"run --rm -itd --init --name {session} image":           "has -t|has -d",
		"run --restart always -i --init --name {session} image": "has --restart|has no --rm",
		"run --rm -i --name {session} image":                    "has no --init",
		"run --rm -i --init -e X={session} image":               "has no --name",
		"container run -i --rm --init=false --name={session} i": "has no --init",
		"run --use-api-socket -i --init --name={session} image": "has no --rm",
	} {
		s := Server{Name: "a", Command: "/usr/bin/docker", Args: strings.Fields(args), Cleanup: cleanup}
		require.NoError(t, s.Validate())
		got := s.Warnings()
		var parts []string
		if want != "" {
			parts = strings.Split(want, "|")
		}
		require.Len(t, got, len(parts), "%s: %v", args, got)
		for i, part := range parts {
			require.Contains(t, got[i], part, args)
		}
	}
	bare := Server{Name: "a", Command: `C:\podman.exe`, Args: []string{"run", "--rm", "-i", "--init", "image"}}
	require.Len(t, bare.Warnings(), 1)
	require.Contains(t, bare.Warnings()[0], "podman rm --force --ignore --time 0 {session}")
	for line, want := range map[string]int{
		"npx run":                              0,
		"docker mcp gateway run":               0,
		"docker exec -i box server run":        0,
		"docker compose run notes":             0,
		"docker":                               0,
		"sudo -n docker run -i --rm --init x":  1,
		`cmd /c C:\docker.exe run -i --rm x`:   2,
		"/usr/bin/podman --remote run --rm -i": 2,
	} {
		words := strings.Fields(line)
		require.Len(t, (&Server{Name: "a", Command: words[0], Args: words[1:]}).Warnings(), want, line)
	}
}
