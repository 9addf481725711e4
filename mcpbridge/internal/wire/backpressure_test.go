package wire

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/stretchr/testify/require"
)

func requestOf(t *testing.T, id any, size int) *jsonrpc.Request {
	t.Helper()
	req := &jsonrpc.Request{Method: "ping", Params: json.RawMessage(strings.Repeat("x", size))}
	if id != nil {
		var err error
		req.ID, err = jsonrpc.MakeID(id)
		require.NoError(t, err)
	}
	return req
}

// admits requires that a message is let in at once.
func admits(t *testing.T, r *Backpressure, req *jsonrpc.Request) {
	t.Helper()
	began := time.Now()
	ok, err := r.Admit(t.Context(), req)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, began, time.Now())
}

func TestServerThatTakesNoAnswersIsReadNoFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Backpressure
		for i := range maxRequests {
			admits(t, &r, requestOf(t, float64(i), 0))
		}
		last, began := requestOf(t, "last", 0), time.Now()
		_, err := r.Admit(t.Context(), last)
		require.ErrorIs(t, err, ErrUntaken)
		require.Equal(t, AnswerTime, time.Since(began))

		began = time.Now()
		time.AfterFunc(AnswerTime-1, func() { r.Answering(requestOf(t, 0.0, 0).ID)(true) })
		var refused []time.Duration
		var waiting sync.WaitGroup
		for _, id := range []string{"a", "b"} {
			waiting.Go(func() {
				if ok, _ := r.Admit(t.Context(), requestOf(t, id, 0)); !ok {
					refused = append(refused, time.Since(began))
				}
			})
		}
		waiting.Wait()
		require.Equal(t, []time.Duration{2*AnswerTime - 1}, refused, "the server has taken one answer, and then no other")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = r.Admit(ctx, last)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		r.Answering(requestOf(t, 1.0, 0).ID)(false)
		admits(t, &r, last)
		ok, err := r.Admit(t.Context(), last)
		require.NoError(t, err)
		require.False(t, ok, "it has been asked already")
	})
}

func TestRequestsOfAServerAreBoundedInTheirSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Backpressure
		large := requestOf(t, "a", 2*maxRequestBytes)
		admits(t, &r, large)
		_, err := r.Admit(t.Context(), requestOf(t, "b", 1))
		require.ErrorIs(t, err, ErrUntaken)
		done := r.Answering(large.ID)
		_, err = r.Admit(t.Context(), requestOf(t, "b", 1))
		require.ErrorIs(t, err, ErrUntaken)
		done(true)
		admits(t, &r, requestOf(t, "b", maxRequestBytes))
	})
}

func TestNotificationsOfAServerWaitForThoseBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Backpressure
		for range maxTold/2 - 1 {
			admits(t, &r, requestOf(t, nil, 0))
		}
		require.Nil(t, r.Barrier())
		admits(t, &r, requestOf(t, nil, 0))
		barrier := r.Barrier()
		require.NotNil(t, barrier)
		require.True(t, barrier.IsCall())
		require.Nil(t, r.Barrier(), "it is not answered")
		require.False(t, r.IsBarrier(requestOf(t, "x", 0).ID))
		admits(t, &r, requestOf(t, nil, maxTold/2*toldBytes))
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			require.True(t, r.IsBarrier(barrier.ID))
		}()
		ok, err := r.Admit(t.Context(), requestOf(t, nil, 0))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, time.Second, time.Since(began))
		require.False(t, r.IsBarrier(barrier.ID))
		require.Equal(t, barrier.ID, r.Barrier().ID)
	})
}
