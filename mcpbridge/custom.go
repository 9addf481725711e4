package mcpbridge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// methodName matches the names that a method or a notification can have.
var methodName = regexp.MustCompile(`^[A-Za-z0-9_$][A-Za-z0-9._/$:-]{0,127}$`)

// notifications are the notifications of MCP that servers send.
var notifications = []string{
	"notifications/cancelled", "notifications/elicitation/complete", "notifications/message", "notifications/progress",
	"notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/resources/updated",
	"notifications/subscriptions/acknowledged", "notifications/tasks/status", "notifications/tools/list_changed",
}

// anyNotification stands for all notifications beyond MCP.
const anyNotification = "*"

// passesOn reports whether a list of notifications includes one beyond MCP.
func passesOn(list []string, method string) bool {
	return slices.Contains(list, method) || slices.Contains(list, anyNotification) && !slices.Contains(notifications, method)
}

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
		case name == anyNotification:
		case !methodName.MatchString(name):
			return fmt.Errorf("customNotifications[%d]: %q is not a notification: use letters, digits and ._/$:-", i, name)
		case slices.Contains(notifications, name):
			return fmt.Errorf("customNotifications[%d]: %q is a notification of MCP, which has a message of its own", i, name)
		}
	}
	return nil
}
