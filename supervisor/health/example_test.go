package health_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/health"
)

// The process is ready while the server "greeter" is not down, and alive whatever its servers
// do.
func Example() {
	ctx := context.Background()
	greeter := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: greeter}},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/livez", health.Live(sup))
	mux.Handle("/readyz", health.Ready(sup, "greeter"))
	web := httptest.NewServer(mux)
	defer web.Close()

	ask := func(path string) {
		resp, err := http.Get(web.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		fmt.Printf("%s %d %s", path, resp.StatusCode, body)
	}
	ask("/livez")
	ask("/readyz?format=json")
	sup.Stop(ctx)
	ask("/readyz")
	// Output:
	// /livez 200 ok
	// /readyz?format=json 200 {"ok":true}
	// /readyz 503 the supervisor has stopped
}
