// Command client-credentials shows that the tokens of a ClientCredentialsHandler are not refreshed
// when the context has ended that Connect was called with.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		url := "http://" + r.Host
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/oauth-protected-resource/mcp":
			fmt.Fprintf(w, `{"resource":"%[1]s/mcp","authorization_servers":["%[1]s"]}`, url)
			return
		case "/.well-known/oauth-authorization-server":
			fmt.Fprintf(w, `{"issuer":"%[1]s","token_endpoint":"%[1]s/token","authorization_endpoint":"%[1]s/authorize","response_types_supported":["code"],"token_endpoint_auth_methods_supported":["client_secret_post"],"code_challenge_methods_supported":["S256"]}`, url)
			return
		case "/token": // a token that has to be refreshed before the next request
			fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":1}`)
			return
		}
		var req struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Header.Get("Authorization") != "Bearer token":
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	handler, err := extauth.NewClientCredentialsHandler(&extauth.ClientCredentialsHandlerConfig{
		Credentials: &oauthex.ClientCredentials{ClientID: "me", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "secret"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	ctx, cancel := context.WithCancel(context.Background()) // as a timeout for Connect would be
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL + "/mcp", OAuthHandler: handler}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	call := func() error {
		_, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "x"})
		return err
	}
	fmt.Println("a call before the context of Connect ends:", call())
	cancel()
	err = call()
	fmt.Println("a call after it:", err)
	if err != nil {
		fmt.Println("still so: the session cannot refresh its token any more")
		return
	}
	fmt.Println("mended: the token is refreshed")
}
