package login_test

import (
	"context"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/oauth2"

	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
)

// A service that acts for itself, and signs with its key.
func ExampleClientCredentials() {
	service, err := login.New(login.Config{Grant: login.ClientCredentials{
		Client: login.Client{ID: "my-service", KeyFile: "/run/secrets/client.pem", Issuer: "https://auth.example.com"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	server := mcpbridge.Server{Name: "search", URL: "https://search.example.com/mcp", Auth: mcpbridge.OAuth(service)}
	_ = server
}

// A pod, whose platform gives it a token.
func ExampleWorkloadIdentity() {
	pod, err := login.New(login.Config{Grant: login.WorkloadIdentity{
		TokenFile: "/var/run/secrets/tokens/mcp",
		Client:    login.Client{Issuer: "https://auth.example.com"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	server := mcpbridge.Server{Name: "search", URL: "https://search.example.com/mcp", Auth: mcpbridge.OAuth(pod)}
	_ = server
}

// A person of a company, whose identity provider says which servers it may use.
func ExampleEnterprise() {
	idToken := func(context.Context) (string, error) { return os.Getenv("ID_TOKEN"), nil }
	person, err := login.New(login.Config{Grant: login.Enterprise{
		Provider:       "https://company.example.com",
		ProviderClient: login.Client{ID: "agent"},
		IDToken:        idToken,
		Client:         login.Client{ID: "agent-at-search", Secret: os.Getenv("CLIENT_SECRET"), Issuer: "https://auth.example.com"},
	}})
	if err != nil {
		log.Fatal(err)
	}
	server := mcpbridge.Server{Name: "search", URL: "https://search.example.com/mcp", Auth: mcpbridge.OAuth(person)}
	_ = server
}

// People log in at a web application, whose machines share the logins.
func ExampleShared() {
	sessions, err := resume.Open("sessions.db", resume.Config{}) // or the store of resume/redis, or of cluster/etcdstore
	if err != nil {
		log.Fatal(err)
	}
	logins, err := login.Shared(sessions, []byte(os.Getenv("LOGIN_SECRET")))
	if err != nil {
		log.Fatal(err)
	}
	of := func(user string) (*login.Login, error) {
		return login.New(login.Config{ID: "mail " + user, Store: logins, Remedy: "log in at https://app.example.com/mail"})
	}
	// After the person has come back with a code, which your application has exchanged for a token:
	loggedIn := func(ctx context.Context, user string, client *oauth2.Config, token *oauth2.Token) error {
		one, err := of(user)
		if err != nil {
			return err
		}
		return one.Keep(ctx, &login.Record{
			Server: "https://mail.example.com/mcp", Resource: "https://mail.example.com/mcp", Issuer: "https://auth.example.com",
			Client: client, Token: token,
		})
	}
	_ = loggedIn
}

// A program of a user, whose processes share the logins.
func ExampleFolder() {
	config, err := os.UserConfigDir()
	if err != nil {
		log.Fatal(err)
	}
	one, err := login.New(login.Config{
		ID: "https://mail.example.com/mcp", Store: login.Folder(filepath.Join(config, "my-agent", "logins")), Remedy: "run: my-agent login",
	})
	if err != nil {
		log.Fatal(err)
	}
	server := mcpbridge.Server{Name: "mail", URL: "https://mail.example.com/mcp", Auth: mcpbridge.OAuth(one)}
	_ = server
}
