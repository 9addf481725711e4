package toolset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

const stateGone = ` State that server "files" kept, such as a login or an open page, is gone.`

// Each code: the text for a call that did not run, and for one that may have run.
var told = map[messages.Code][2]string{
	messages.CodeExpired: {
		`The session with server "files" expired, and so did the one that replaced it. The tool did not run. Try again.` + stateGone,
		`The session with server "files" expired, and so did the one that replaced it. The tool may have run. Check its effect before you repeat the call.` + stateGone,
	},
	messages.CodeLost: {
		`The connection to server "files" broke before the result arrived. The tool did not run. Try again. State that server "files" kept, such as a login or an open page, may be gone.`,
		`The connection to server "files" broke before the result arrived. The tool may have run. Check its effect before you repeat the call. State that server "files" kept, such as a login or an open page, may be gone.`,
	},
	messages.CodeUnavailable: {
		`Server "files" cannot be reached. The tool did not run. Try again later, or continue without this server.`,
		`Server "files" cannot be reached. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeBusy: {
		`Server "files" is busy with other calls: the detail. The tool did not run. Try again later.`,
		`Server "files" is busy with other calls: the detail. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeDraining: {
		`The program that makes the calls is stopping. The tool did not run. Do not try again.`,
		`The program that makes the calls is stopping. The tool may have run. Check its effect before you repeat the call. Do not try again.`,
	},
	messages.CodeClosed: {
		`The session with server "files" was closed. The tool did not run. Try again once.` + stateGone,
		`The session with server "files" was closed. The tool may have run. Check its effect before you repeat the call.` + stateGone,
	},
	messages.CodeUnknownServer: {
		`Server "files" and its tools are no longer available. The tool did not run. Do not try again.`,
		`Server "files" and its tools are no longer available. The tool may have run. Check its effect before you repeat the call. Do not try again.`,
	},
	messages.CodeInvalid: {
		`The call is not valid: the detail. The tool did not run. Correct the call before you try again.`,
		`The call is not valid: the detail. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeRefused: {
		`The call was refused: the detail. The tool did not run. Do not try again unless the user asks for it.`,
		`The call was refused: the detail. The tool may have run. Check its effect before you repeat the call. Do not try again unless the user asks for it.`,
	},
	messages.CodeUnauthorized: {
		`Server "files" does not accept the credentials. The tool did not run. Do not try again before the user has logged in or granted access.`,
		`Server "files" does not accept the credentials. The tool may have run. Check its effect before you repeat the call. Do not try again before the user has logged in or granted access.`,
	},
	messages.CodeRateLimited: {
		`Server "files" is called too often: the detail. The tool did not run. Try again later, and call it less often.`,
		`Server "files" is called too often: the detail. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeServerError: {
		`Server "files" answered with an error: the detail. The tool did not run. Do not repeat the same call, because it would probably fail again.`,
		`Server "files" answered with an error: the detail. The tool may have run. Check its effect before you repeat the call. Do not repeat the same call, because it would probably fail again.`,
	},
	messages.CodeProtocol: {
		`Server "files" answered, but the result could not be read. The tool did not run. Do not repeat the same call, because it would probably fail again.`,
		`Server "files" answered, but the result could not be read. The tool may have run. Check its effect before you repeat the call. Do not repeat the same call, because it would probably fail again.`,
	},
	messages.CodeCancelled: {
		`The call was cancelled. The tool did not run. Do not try again unless the user asks for it.`,
		`The call was cancelled. The tool may have run. Check its effect before you repeat the call. Do not try again unless the user asks for it.`,
	},
	messages.CodeDeadline: {
		`The result did not arrive in time. The tool did not run. Try again once. Ask for less in one call if that is possible.`,
		`The result did not arrive in time. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeQuiet: {
		`Server "files" was silent for too long while the call ran. The tool did not run. Try again once. Ask for less in one call if that is possible.`,
		`Server "files" was silent for too long while the call ran. The tool may have run. Check its effect before you repeat the call.`,
	},
	messages.CodeInternal: {
		`The program that makes the calls has a fault. The tool did not run. Do not try again.`,
		`The program that makes the calls has a fault. The tool may have run. Check its effect before you repeat the call. Do not try again.`,
	},
}

func TestModelIsToldOfEachCode(t *testing.T) {
	source, err := os.ReadFile("../messages/failure.go")
	require.NoError(t, err)
	var codes []messages.Code
	for _, code := range regexp.MustCompile(`(?m)^\tCode\w+ +Code = "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, messages.Code(code[1]))
	}
	require.Greater(t, len(codes), 10)
	for _, code := range codes {
		require.Contains(t, told, code)
		for i, want := range told[code] {
			f := &messages.Failure{Key: messages.Key{Server: "files", Scope: "s"}, Op: "tools/call", Target: "read", Code: code, Detail: "the detail", MayHaveRun: i == 1}
			require.Equal(t, want, Explain(f))
			require.Equal(t, want, Explain(fmt.Errorf("wrapped: %w", f)))
		}
	}
	require.Len(t, explanations, len(codes))
}

func TestExplanationSaysWhenToTryAgain(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0:                       "Try again later, or",
		time.Millisecond:        "Try again in 1 second, or",
		1500 * time.Millisecond: "Try again in 2 seconds, or",
		time.Hour:               "Try again in 3600 seconds, or",
		-time.Second:            "Try again later, or",
	} {
		require.Contains(t, Explain(&messages.Failure{Code: messages.CodeUnavailable, RetryAfter: after}), want)
	}
	require.Contains(t, Explain(&messages.Failure{Code: messages.CodeDeadline, RetryAfter: time.Second}), "Try again once in 1 second.")
}

func TestExplanationQuotesWhatHelpsOnly(t *testing.T) {
	f := &messages.Failure{Code: messages.CodeServerError, Detail: "the column\u202e \"SERVER\"\nWHEN is unknown."}
	require.Equal(t, `The server answered with an error: the column "SERVER" WHEN is unknown. The tool did not run. `+failsAny, Explain(f))
	f.Detail = strings.Repeat("é", 5000)
	require.Less(t, len(Explain(f)), 2300)
	require.True(t, strings.Contains(Explain(f), "é…"))
	f.Detail = ""
	require.Contains(t, Explain(f), "The server answered with an error. The tool")

	require.Empty(t, Explain(nil))
	require.Equal(t, "The call failed: it broke. Do not try again unless the user asks for it.", Explain(errors.New("it\nbroke")))
	require.Contains(t, Explain(&messages.Failure{Code: "new", Detail: "x"}), "The call failed: x.")
	require.Contains(t, Explain((*messages.Failure)(nil)), "The call failed")
	require.Contains(t, Explain(&messages.Failure{Op: "tools/list", Code: messages.CodeLost, MayHaveRun: true}), "The tool did not run.")
	require.Contains(t, Explain(context.Canceled), "context canceled")
}

func TestModelIsNotBlamedForAServerThatIsAway(t *testing.T) {
	for want, f := range map[string]*messages.Failure{
		`Server "files" did not answer in time. The tool did not run. Try again in 2 seconds, or continue without this server.`: {
			Op: "tools/call", Code: messages.CodeDeadline, Supervisor: "mcpactor1", RetryAfter: 2 * time.Second,
		},
		`The tools of server "files" could not be listed. The tool did not run. Try again later, or continue without this server.`: {
			Op: "tools/list", Code: messages.CodeInvalid, Detail: "method not found",
		},
		`The result did not arrive in time. The tool did not run. Try again once. Ask for less in one call if that is possible.`: {
			Op: "tools/call", Code: messages.CodeDeadline, Supervisor: "mcpactor1", Attempt: 1,
		},
		`Server "files" cannot be used as it is configured. The tool did not run. Do not try again before somebody has corrected that. Continue without this server.`: {
			Op: "tools/list", Code: messages.CodeUnavailable, Detail: "not found", Remedy: "check command",
		},
	} {
		f.Key.Server = "files"
		require.Equal(t, want, Explain(f))
	}
}
