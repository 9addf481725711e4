package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// server is the name of the suite's server, and scope that of the one session.
const (
	server = "suite"
	scope  = "agent"
)

// scenario is what an agent does.
type scenario struct {
	// first is what it does in any case.
	first []messages.Command
	// then is what it does because of a result, before anything else that is left to
	// do; nil is nothing.
	then func(messages.Result) ([]messages.Command, error)
	// refused says that a command has to fail, with which the scenario ends. Else none
	// may.
	refused bool
	// form is how the user fills in every form.
	form map[string]any
	// login returns what authorizes the agent to use the server; nil is nothing.
	login func() (auth.OAuthHandler, error)
	// program says that the program mcpactor plays it, and not an agent.
	program bool
}

// knowledge is what the suite tells about a scenario beforehand.
type knowledge struct {
	ClientID         string `json:"client_id"`
	ClientSecret     string `json:"client_secret"`
	PrivateKey       string `json:"private_key_pem"`
	Provider         string `json:"idp_issuer"`
	ProviderClientID string `json:"idp_client_id"`
	IDToken          string `json:"idp_id_token"`
	WorkloadToken    string `json:"valid_jwt"`
	ToolCalls        []struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
	} `json:"toolCalls"`
}

// find returns the scenario of a name.
func find(name string, known knowledge) (scenario, error) {
	switch name {
	case "initialize", "json-schema-ref-no-deref":
		return scenario{first: commands(listTools())}, nil
	case "request-metadata":
		return scenario{first: commands(&messages.Open{Header: to()})}, nil
	case "tools_call":
		return callOf("add_numbers", map[string]any{"a": 5, "b": 3}), nil
	case "sse-retry":
		return callOf("test_reconnection", nil), nil
	case "elicitation-sep1034-client-defaults":
		s := callOf("test_client_elicitation_defaults", nil)
		s.form = map[string]any{}
		return s, nil
	case "sep-2322-client-request-state":
		return scenario{
			first: commands(
				callTool("test_mrtr_echo_state", nil), callTool("test_mrtr_no_state", nil),
				callTool("test_mrtr_unrelated", nil), callTool("test_mrtr_no_result_type", nil),
			),
			form: map[string]any{"confirmed": true},
		}, nil
	case "http-standard-headers":
		return scenario{first: commands(listTools(), &messages.ListResources{Header: to()}, &messages.ListPrompts{Header: to()}), then: useFirst}, nil
	case "http-custom-headers":
		s := scenario{first: commands(listTools())}
		for _, call := range known.ToolCalls {
			s.first = append(s.first, callTool(call.Name, call.Arguments))
		}
		return s, nil
	case "http-invalid-tool-headers":
		return scenario{first: commands(listTools()), then: callAll(map[string]any{"region": "us-west1"})}, nil
	case "json-schema-2020-12-preservation":
		return scenario{first: commands(listTools()), then: echoSchema}, nil
	}
	if strings.HasPrefix(name, "auth/") {
		return authorized(name, known), nil
	}
	return scenario{}, fmt.Errorf("%q is no scenario that is known here", name)
}

// callOf is the scenario that calls a tool, which must be in the list.
func callOf(tool string, arguments map[string]any) scenario {
	return scenario{first: commands(listTools()), then: onTools(func(tools []*mcp.Tool) ([]messages.Command, error) {
		if _, err := named(tools, tool); err != nil {
			return nil, err
		}
		return commands(callTool(tool, arguments)), nil
	})}
}

// callAll calls all tools that are listed.
func callAll(arguments map[string]any) func(messages.Result) ([]messages.Command, error) {
	return onTools(func(tools []*mcp.Tool) (calls []messages.Command, err error) {
		for _, tool := range tools {
			calls = append(calls, callTool(tool.Name, arguments))
		}
		return calls, nil
	})
}

// echoSchema hands the schema of a tool back, as it was understood.
func echoSchema(result messages.Result) ([]messages.Command, error) {
	return onTools(func(tools []*mcp.Tool) ([]messages.Command, error) {
		tool, err := named(tools, "json_schema_2020_12_tool")
		if err != nil {
			return nil, err
		}
		return commands(callTool("json_schema_echo", map[string]any{"schema": tool.InputSchema})), nil
	})(result)
}

// useFirst uses the first of whatever is listed.
func useFirst(result messages.Result) ([]messages.Command, error) {
	switch list := result.(type) {
	case *messages.ToolList:
		for _, tool := range list.Result.Tools {
			return commands(callTool(tool.Name, nil)), nil
		}
	case *messages.ResourceList:
		for _, resource := range list.Result.Resources {
			return commands(&messages.ReadResource{Header: to(), Params: &mcp.ReadResourceParams{URI: resource.URI}}), nil
		}
	case *messages.PromptList:
		for _, prompt := range list.Result.Prompts {
			return commands(&messages.GetPrompt{Header: to(), Params: &mcp.GetPromptParams{Name: prompt.Name}}), nil
		}
	}
	return nil, nil
}

// onTools is what to do because of a list of tools.
func onTools(do func([]*mcp.Tool) ([]messages.Command, error)) func(messages.Result) ([]messages.Command, error) {
	return func(result messages.Result) ([]messages.Command, error) {
		if list, ok := result.(*messages.ToolList); ok {
			return do(list.Result.Tools)
		}
		return nil, nil
	}
}

func named(tools []*mcp.Tool, name string) (*mcp.Tool, error) {
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if i := slices.Index(names, name); i >= 0 {
		return tools[i], nil
	}
	return nil, fmt.Errorf("no tool is called %s, only %s", name, strings.Join(names, ", "))
}

func commands(all ...messages.Command) []messages.Command { return all }

func to() messages.Header { return messages.To(server, scope) }

func listTools() *messages.ListTools { return &messages.ListTools{Header: to()} }

func callTool(name string, arguments map[string]any) *messages.CallTool {
	if arguments == nil {
		arguments = map[string]any{}
	}
	return &messages.CallTool{Header: to(), Params: &mcp.CallToolParams{Name: name, Arguments: arguments}}
}
