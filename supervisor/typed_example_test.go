package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// Forecast is what the tool of the example returns.
type Forecast struct {
	Place   string  `json:"place"`
	Degrees float64 `json:"degrees"`
}

func ExampleCallToolAs() {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "forecast"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Place string `json:"place"`
	},
	) (*mcp.CallToolResult, Forecast, error) {
		return nil, Forecast{in.Place, 7.5}, nil
	})
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{{Name: "weather", InMemory: server}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)

	forecast, result, err := supervisor.CallToolAs[Forecast](ctx, sup.Client(), "weather", "user-7", &mcp.CallToolParams{
		Name: "forecast", Arguments: map[string]any{"place": "Oslo"},
	})
	if err != nil {
		log.Fatal(err) // names the field that is not as the output schema says
	}
	fmt.Println(forecast.Place, forecast.Degrees, "generation", result.Generation)
	// Output: Oslo 7.5 generation 1
}
