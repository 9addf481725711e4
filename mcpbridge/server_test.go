package mcpbridge

import (
	"net/http"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestValidateNamesTheField(t *testing.T) {
	for want, srv := range map[string]Server{
		"name: \"\" is not a name":          {Command: "x"},
		"name: \"a b\" is not a name":       {Name: "a b", Command: "x"},
		"command: is empty, and so are url": {Name: "a"},
		"command: set only one":             {Name: "a", Command: "x", URL: "http://x"},
		"transport: \"pigeon\" is none of":  {Name: "a", URL: "http://x", Transport: "pigeon"},
		"url: scheme \"ftp\" is none of":    {Name: "a", URL: "ftp://x"},
		"url: has no host":                  {Name: "a", URL: "http:///mcp"},
		"url: is malformed":                 {Name: "a", URL: "http://x\x7f"},
		"httpClient: has a Timeout":         {Name: "a", URL: "http://x", HTTPClient: &http.Client{Timeout: time.Second}},
		"maxResult: -2 is negative":         {Name: "a", Command: "x", MaxResult: -2},
		"keepAlive: -1s is negative":        {Name: "a", Command: "x", KeepAlive: -time.Second},
	} {
		require.ErrorContains(t, srv.Validate(), want)
	}
	for _, srv := range []Server{
		{Name: "a", Command: "x"},
		{Name: "a.b-C_9", URL: "https://x/mcp?token=y", Transport: TransportSSE},
		{Name: "a", InMemory: mcp.NewServer(&mcp.Implementation{}, nil), MaxResult: -1},
	} {
		require.NoError(t, srv.Validate())
	}
}
