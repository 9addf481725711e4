package interception

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

func operationOf(scope, id string) *operation {
	op := &messages.Ping{Header: messages.To("s", scope)}
	op.ID = id
	return &operation{Call: &contract.Call{Op: op, Key: op.Key, Supervisor: "name"}, cancel: func() {}}
}

// Whatever interceptors return, the caller gets a reply to its own operation.
func TestTheReplyIsToTheOperationOfTheCaller(t *testing.T) {
	other := messages.Key{Server: "other", Scope: "other"}
	for _, test := range []struct {
		result messages.Result
		err    error
		code   messages.Code // "" for a result
		own    bool
	}{
		{&messages.ToolResult{Receipt: messages.Receipt{Key: other, ID: "other", Generation: 3}}, nil, "", false},
		{nil, nil, messages.CodeInternal, true},
		{nil, errors.New("no"), messages.CodeRefused, true},
		{nil, &messages.Failure{Code: messages.CodeLost, Key: other, ID: "other"}, messages.CodeLost, false},
		{nil, (*messages.Failure)(nil), messages.CodeRefused, true},
	} {
		i := operationOf("a", "id")
		reply, own := i.replyFor(test.result, test.err)
		require.Equal(t, test.own, own)
		if test.code == "" {
			require.Equal(t, i.Key, reply.(*messages.ToolResult).Key)
			require.Equal(t, "id", reply.(*messages.ToolResult).ID)
			require.EqualValues(t, 3, reply.(*messages.ToolResult).Generation)
			require.Equal(t, other, test.result.GetReceipt().Key, "an interceptor may have kept it")
			continue
		}
		f := reply.(*messages.Failure)
		require.Equal(t, test.code, f.Code)
		require.Equal(t, []any{i.Key, "id", "name"}, []any{f.Key, f.ID, f.Supervisor})
	}
}

func TestTheFirstInterceptorIsTheOutermostOne(t *testing.T) {
	var order []string
	named := func(name string) actors.Interceptor {
		return func(next actors.Runner) actors.Runner {
			return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
				order = append(order, name)
				return next(ctx, op)
			}
		}
	}
	last := func(context.Context, messages.Operation) (messages.Result, error) { return &messages.ToolResult{}, nil }
	_, err := chain([]actors.Interceptor{named("first"), named("second")}, last)(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second"}, order)
	none := func(actors.Runner) actors.Runner { return nil }
	_, err = chain([]actors.Interceptor{named("first"), none}, last)(t.Context(), &messages.Ping{})
	require.ErrorContains(t, err, "interceptors[1] returned no runner")
}

func TestOperationsAreFoundByIDAndScope(t *testing.T) {
	s := newOperations()
	first, second, other, unnamed := operationOf("a", "id"), operationOf("a", "id"), operationOf("b", "id"), operationOf("a", "")
	for _, i := range []*operation{first, second, other, unnamed} {
		s.add(i)
	}
	found := func() (all []*operation) {
		for i := range s.named.Of(first.name()).All() {
			all = append(all, i)
		}
		return all
	}
	require.Equal(t, []*operation{second, first}, found(), "the newest first")
	require.Equal(t, 3, s.scopes.Of("a").Count)
	require.Equal(t, 3, s.count[first.Key])
	s.remove(second)
	require.Equal(t, []*operation{first}, found())
	require.False(t, s.has(second))
	for _, i := range []*operation{first, other, unnamed} {
		s.remove(i)
	}
	require.Zero(t, len(s.named)+len(s.scopes)+len(s.count)+s.all.Count)
}
