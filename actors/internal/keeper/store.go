package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/handles"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// store has the records of handles, in the store of the configuration if there is one. Its methods may block, and may be called from any
// goroutine.
type store struct {
	cfg *contract.Config
}

// errUnsaved is the error of a mint whose record was not saved.
var errUnsaved = errors.New("the store does not answer, and the call mints a handle")

// save saves the record of a mint, with the handle if that is known, and the generation of the MCP session that has minted it.
func (s store) save(m *handles.Mint, id string, generation uint64) error {
	if s.cfg.Store == nil {
		return nil
	}
	data, err := json.Marshal(handles.Record{
		Key: m.By, Holder: m.Holder.Name, Mint: m.Kind.Mint, ID: id, Generation: generation, Since: m.Since,
	})
	if err != nil {
		return err
	}
	saved := contract.KeyStore{Cfg: s.cfg, Key: m.Record}.Try("save a handle", func(ctx context.Context) error {
		return s.cfg.Store.Save(ctx, m.Record, &mcpbridge.Record{Handle: data})
	})
	if !saved {
		return errUnsaved
	}
	return nil
}

func (s store) delete(at messages.Key) {
	contract.KeyStore{Cfg: s.cfg, Key: at}.Try("delete a handle", func(ctx context.Context) error { return s.cfg.Store.Delete(ctx, at) })
}

// unansweredFor is how long the record of a mint without an answer is kept.
const unansweredFor = 24 * time.Hour

// all returns the keys of the records.
func (s store) all() (keys []messages.Key) {
	contract.KeyStore{Cfg: s.cfg}.Try("list handles", func(ctx context.Context) (err error) {
		keys, err = s.cfg.Store.Keys(ctx)
		return err
	})
	return slices.DeleteFunc(keys, func(at messages.Key) bool { return !recordkey.IsHandle(at) })
}

// load returns the records that there are.
func (s store) load(keys []messages.Key) map[messages.Key]handles.Record {
	found := map[messages.Key]handles.Record{}
	for _, at := range keys {
		var r handles.Record
		of := contract.KeyStore{Cfg: s.cfg, Key: at}
		record := of.Load()
		switch {
		case record == nil || json.Unmarshal(record.Handle, &r) != nil:
		case r.ID == "" && time.Since(r.Since) > unansweredFor:
			s.delete(at)
		default:
			found[at] = r
		}
	}
	return found
}
