package inputs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/pin"
	"github.com/mcpactor/mcpactor/toolset"
)

// Pins is the lock file that a command obeys: see package pin. A nil Pins accepts everything. Its methods may be called from any goroutine.
type Pins struct {
	Path string

	lock atomic.Pointer[pin.Lock]
	seen os.FileInfo // before the lock was read
}

// PinsBeside returns the path of the lock file beside a configuration file, such as mcp.lock.json for mcp.json.
func PinsBeside(config string) string {
	return strings.TrimSuffix(config, filepath.Ext(config)) + ".lock.json"
}

// OpenPins reads the lock file of a command: the one that is named, or else the one beside the configuration file, if there is one.
func OpenPins(named, config string) (*Pins, error) {
	path := named
	switch {
	case named == "" && config == "":
		return nil, nil
	case named == "":
		path = PinsBeside(config)
	}
	seen := look(path)
	lock, err := pin.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && named == "":
		return nil, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, cli.Usagef("--pin: there is no file %q: mcpactor pin with the same --pin makes it", path)
	case err != nil:
		return nil, cli.Usagef("the lock file is invalid: %w", err)
	}
	p := &Pins{Path: path, seen: seen}
	p.lock.Store(lock)
	return p, nil
}

// PinHint says how to make the lock file of a configuration file.
func PinHint(config string) string {
	return "tools are not pinned, and may change unseen: to pin them, run mcpactor pin --config " + config
}

// Lock returns what was accepted, or nil.
func (p *Pins) Lock() *pin.Lock {
	if p == nil {
		return nil
	}
	return p.lock.Load()
}

// Tool asks the lock that is in effect, as the methods below do.
func (p *Pins) Tool(server, name, digest string) error { return p.Lock().Tool(server, name, digest) }

// Prompt is that of the lock.
func (p *Pins) Prompt(server, name, digest string) error {
	return p.Lock().Prompt(server, name, digest)
}

// Instructions is that of the lock.
func (p *Pins) Instructions(server, digest string) error {
	return p.Lock().Instructions(server, digest)
}

// Identity is that of the lock.
func (p *Pins) Identity(server string, is pin.Identity) error { return p.Lock().Identity(server, is) }

// Client sends commands. It is implemented by supervisor.Client.
type Client interface {
	Do(ctx context.Context, cmd messages.Command) (messages.Reply, error)
}

// Definitions lists tools or prompts, and returns their definitions. incomplete says why some are missing, or is empty.
func Definitions(ctx context.Context, client Client, list messages.Operation) (all map[string]pin.Definition, incomplete string, err error) {
	got, err := client.Do(ctx, list)
	if err != nil {
		return nil, "", err
	}
	all = map[string]pin.Definition{}
	add := func(name string, d pin.Definition) {
		if other, twice := all[name]; twice && other.Digest != d.Digest {
			err = messages.NewFailure(list, messages.CodeProtocol, fmt.Sprintf("the server lists %.100q twice, with different definitions", name))
		}
		all[name] = d
	}
	switch got := got.(type) {
	case *messages.ToolList:
		for _, tool := range got.Result.Tools {
			add(tool.Name, pin.OfTool(tool))
		}
		incomplete = got.Incomplete
	case *messages.PromptList:
		for _, prompt := range got.Result.Prompts {
			add(prompt.Name, pin.OfPrompt(prompt))
		}
		incomplete = got.Incomplete
	}
	return all, incomplete, err
}

// Check returns the failure of a command whose tool or prompt the lock refuses, as the session of its key lists it now.
func (p *Pins) Check(ctx context.Context, client Client, cmd messages.Command) error {
	var key messages.Key
	var name string
	var list messages.Operation
	accepts := p.Tool
	switch cmd := cmd.(type) {
	case *messages.CallTool:
		key, name = cmd.Key, cmd.Params.Name
		list = &messages.ListTools{Header: messages.To(key.Server, key.Scope)}
	case *messages.GetPrompt:
		key, name, accepts = cmd.Key, cmd.Params.Name, p.Prompt
		list = &messages.ListPrompts{Header: messages.To(key.Server, key.Scope)}
	}
	if p == nil || list == nil {
		return nil
	}
	all, _, err := Definitions(ctx, client, list)
	if err != nil {
		return err
	}
	definition, listed := all[name]
	if !listed {
		return messages.NewFailure(cmd, messages.CodeInvalid, "the server does not list it, so that nobody can have accepted it")
	}
	if err := accepts(key.Server, name, definition.Digest); err != nil {
		return messages.NewFailure(cmd, messages.CodeRefused, err.Error())
	}
	return nil
}

// policy returns a policy that leaves out the tools that the lock refuses. It is nil without a lock.
func (p *Pins) policy() *toolset.Policy {
	if p == nil {
		return nil
	}
	return &toolset.Policy{Accept: func(t *toolset.Tool) error { return p.Tool(t.Server, t.Original, t.Digest) }}
}

// Watch reads the lock file again after each change, and calls changed, until end is called. A file that is gone or invalid changes
// nothing: what was accepted stays. An invalid one is logged.
func (p *Pins) Watch(log *zerolog.Logger, changed func()) (end func()) {
	if p == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	changes, ended := make(chan struct{}), make(chan struct{})
	go watch(ctx, p.Path, p.seen, changes)
	go func() {
		defer close(ended)
		for {
			select {
			case <-changes:
			case <-ctx.Done():
				return
			}
			lock, err := pin.Read(p.Path)
			if err != nil {
				log.Error().Str("err", OneLine(err)).Msg("lock file was invalid, nothing was reloaded")
				continue
			}
			p.lock.Store(lock)
			log.Info().Str("file", p.Path).Msg("lock file was reloaded")
			changed()
		}
	}()
	return func() { cancel(); <-ended }
}
