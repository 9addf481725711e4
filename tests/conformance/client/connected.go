package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// connected plays a scenario with the client of the SDK, over the transport of a gateway that way names.
func connected(ctx context.Context, sup *supervisor.Supervisor, way string, s scenario) (err error) {
	gw, err := gateway.New(sup, gateway.Config{})
	if err != nil {
		return err
	}
	defer gw.Close()
	p := player{}
	var transport mcp.Transport
	switch way {
	case "server":
		transport = gw.Server(server, gateway.Scope{Name: scope, Ends: true})
	case "tools":
		tools, err := toolset.New(nil, sup, toolset.Config{Scope: scope, Servers: []toolset.Filter{{Name: server}}})
		if err != nil {
			return err
		}
		defer tools.Close()
		transport, p.prefix = gw.Tools(tools, gateway.Scope{Ends: true}), server+"__"
	default:
		return fmt.Errorf("%q is no transport of a gateway", way)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "conformance", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: s.form}, nil
		},
	})
	if p.session, err = client.Connect(ctx, transport, nil); err != nil {
		return err
	}
	return errors.Join(p.play(ctx, s), p.session.Close())
}

// player does what commands say, in a session of the SDK.
type player struct {
	session *mcp.ClientSession
	prefix  string // of the names of tools
}

// play does one thing after the other.
func (p *player) play(ctx context.Context, s scenario) error {
	for todo := s.first; len(todo) > 0; {
		result, err := p.do(ctx, todo[0])
		if err != nil {
			return err
		}
		todo = todo[1:]
		if s.then == nil {
			continue
		}
		more, err := s.then(result)
		if err != nil {
			return err
		}
		todo = append(more, todo...)
	}
	return nil
}

// do does what one command says. Tools have the names that the server has given them.
func (p *player) do(ctx context.Context, command messages.Command) (messages.Result, error) {
	switch command := command.(type) {
	case *messages.ListTools:
		list, err := p.session.ListTools(ctx, nil)
		if err != nil {
			return nil, err
		}
		for _, tool := range list.Tools {
			tool.Name = strings.TrimPrefix(tool.Name, p.prefix)
		}
		return &messages.ToolList{Result: list}, nil
	case *messages.CallTool:
		params := *command.Params
		params.Name = p.prefix + params.Name
		result, err := p.session.CallTool(ctx, &params)
		return &messages.ToolResult{Result: result}, err
	default:
		return nil, fmt.Errorf("%T is not for a session of the SDK", command)
	}
}
