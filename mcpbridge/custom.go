package mcpbridge

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// methodName matches the names that a method or a notification can have.
var methodName = regexp.MustCompile(`^[A-Za-z0-9_$][A-Za-z0-9._/$:-]{0,127}$`)

// anyParams and anyResult are types with which a method can be registered.
type (
	anyParams struct{ mcp.ParamsBase }
	anyResult struct{ mcp.ResultBase }
)

// checkCustom returns an error for the first custom method or notification that is wrong.
func checkCustom(methods, notes []string) error {
	var client *mcp.Client // refuses the methods of MCP
	for i, name := range methods {
		if client == nil {
			client = mcp.NewClient(&mcp.Implementation{Name: "mcpactor"}, nil)
		}
		switch {
		case !methodName.MatchString(name):
			return fmt.Errorf("customMethods[%d]: %q is not a method: use letters, digits and ._/$:-", i, name)
		case strings.HasPrefix(name, "notifications/"):
			return fmt.Errorf("customMethods[%d]: %q is a notification, which has no result", i, name)
		case mcp.AddSendingCustomMethod[*anyParams, *anyResult](client, name) != nil:
			return fmt.Errorf("customMethods[%d]: %q is a method of MCP, which has a message of its own", i, name)
		}
	}
	for i, name := range notes {
		switch {
		case name == rpc.AnyNotification:
		case !methodName.MatchString(name):
			return fmt.Errorf("customNotifications[%d]: %q is not a notification: use letters, digits and ._/$:-", i, name)
		case rpc.IsNotificationOfMCP(name):
			return fmt.Errorf("customNotifications[%d]: %q is a notification of MCP, which has a message of its own", i, name)
		}
	}
	return nil
}
