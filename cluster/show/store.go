package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// storeMessage is a request to the store of the show, or its answer.
type storeMessage struct {
	Op     string            `json:"op,omitempty"` // load, save, delete or keys
	Key    messages.Key      `json:"key,omitzero"`
	Record *mcpbridge.Record `json:"record,omitempty"`
	Keys   []messages.Key    `json:"keys,omitempty"`
	Error  string            `json:"error,omitempty"`
}

// serveStore returns a handler that lets the members use a store. Members of a real cluster
// share one such as those of package cluster/etcdstore.
func serveStore(store mcpbridge.Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m storeMessage
		err := json.NewDecoder(r.Body).Decode(&m)
		if err == nil {
			switch m.Op {
			case "load":
				m.Record, err = store.Load(r.Context(), m.Key)
			case "save":
				err = store.Save(r.Context(), m.Key, m.Record)
			case "delete":
				err = store.Delete(r.Context(), m.Key)
			case "keys":
				m.Keys, err = store.Keys(r.Context())
			}
		}
		if err != nil {
			m.Error = err.Error()
		}
		json.NewEncoder(w).Encode(m) //nolint:errcheck,errchkjson // a client that is gone needs no answer
	})
}

// remoteStore is the store of the show, in a member. It is the URL of [serveStore].
type remoteStore string

var _ mcpbridge.Store = remoteStore("")

// Load returns the record of a key, or nil.
func (s remoteStore) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	m, err := s.ask(ctx, storeMessage{Op: "load", Key: key})
	return m.Record, err
}

// Save replaces the record of a key.
func (s remoteStore) Save(ctx context.Context, key messages.Key, record *mcpbridge.Record) error {
	_, err := s.ask(ctx, storeMessage{Op: "save", Key: key, Record: record})
	return err
}

// Delete deletes the record of a key.
func (s remoteStore) Delete(ctx context.Context, key messages.Key) error {
	_, err := s.ask(ctx, storeMessage{Op: "delete", Key: key})
	return err
}

// Keys returns the keys that have records.
func (s remoteStore) Keys(ctx context.Context) ([]messages.Key, error) {
	m, err := s.ask(ctx, storeMessage{Op: "keys"})
	return m.Keys, err
}

func (s remoteStore) ask(ctx context.Context, question storeMessage) (answer storeMessage, err error) {
	body, err := json.Marshal(question)
	if err != nil {
		return answer, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, string(s), bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("store: %w", err)
	}
	if answer.Error != "" {
		return answer, errors.New(answer.Error)
	}
	return answer, nil
}
