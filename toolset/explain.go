package toolset

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/internal/visible"
	"github.com/mcpactor/mcpactor/messages"
)

// explanation is what a model is told about a failure. In its texts, SERVER stands for the
// server, and WHEN for the time until the next attempt.
type explanation struct {
	what string // what has happened
	// detail is true if the detail of the failure helps the model. Other details may quote the
	// output of a process.
	detail bool
	next   string // what to do
	when   string // WHEN, if the failure does not say it
	final  bool   // next applies also if the call may have run
	gone   string // what became of the state of the session; empty if nothing did
}

const (
	mayBeGone = "State that SERVER kept, such as a login or an open page, may be gone."
	isGone    = "State that SERVER kept, such as a login or an open page, is gone."
	notAgain  = "Do not try again."
	onlyAsked = "Do not try again unless the user asks for it."
	failsAny  = "Do not repeat the same call, because it would probably fail again."
)

// explanations has an explanation for each code.
var explanations = map[messages.Code]explanation{
	messages.CodeExpired:       {what: "The session with SERVER expired, and so did the one that replaced it.", next: "Try againWHEN.", gone: isGone},
	messages.CodeLost:          {what: "The connection to SERVER broke before the result arrived.", next: "Try againWHEN.", gone: mayBeGone},
	messages.CodeUnavailable:   {what: "SERVER cannot be reached.", next: "Try againWHEN, or continue without this server.", when: " later"},
	messages.CodeBusy:          {what: "SERVER is busy with other calls.", detail: true, next: "Try againWHEN.", when: " later"},
	messages.CodeDraining:      {what: "The program that makes the calls is stopping.", next: notAgain, final: true},
	messages.CodeClosed:        {what: "The session with SERVER was closed.", next: "Try again onceWHEN.", gone: isGone},
	messages.CodeUnknownServer: {what: "SERVER and its tools are no longer available.", next: notAgain, final: true},
	messages.CodeInvalid:       {what: "The call is not valid.", detail: true, next: "Correct the call before you try again."},
	messages.CodeRefused:       {what: "The call was refused.", detail: true, next: onlyAsked, final: true},
	messages.CodeUnauthorized:  {what: "SERVER does not accept the credentials.", next: "Do not try again before the user has logged in or granted access.", final: true},
	messages.CodeRateLimited:   {what: "SERVER is called too often.", detail: true, next: "Try againWHEN, and call it less often.", when: " later"},
	messages.CodeServerError:   {what: "SERVER answered with an error.", detail: true, next: failsAny, final: true},
	messages.CodeProtocol:      {what: "SERVER answered, but the result could not be read.", next: failsAny, final: true},
	messages.CodeCancelled:     {what: "The call was cancelled.", next: onlyAsked, final: true},
	messages.CodeDeadline:      {what: "The result did not arrive in time.", next: "Try again onceWHEN. Ask for less in one call if that is possible."},
	messages.CodeQuiet:         {what: "SERVER was silent for too long while the call ran.", next: "Try again onceWHEN. Ask for less in one call if that is possible."},
	messages.CodeInternal:      {what: "The program that makes the calls has a fault.", next: notAgain, final: true},
}

// The explanations for a call that was not sent because its server is away.
var (
	// unlisted is for a call whose tool could not be listed, for a reason that is not the call's.
	unlisted = explanation{what: "The tools of SERVER could not be listed.", next: "Try againWHEN, or continue without this server.", when: " later"}
	// unheard is for a call that waited for a session until its deadline.
	unheard = explanation{what: "SERVER did not answer in time.", next: "Try againWHEN, or continue without this server.", when: " later"}
	// unusable is for a server that works only after somebody has changed its configuration.
	unusable = explanation{what: "SERVER cannot be used as it is configured.", next: "Do not try again before somebody has corrected that. Continue without this server.", final: true}
)

// pendingText is for a call that waits for an answer.
const pendingText = "The call waits for an approval, and has not run yet. Its result is told after the approval. Do not repeat the call."

// explanationOf returns what a model is told of a failure.
func explanationOf(f *messages.Failure) explanation {
	e, known := explanations[f.Code]
	switch {
	case f.Remedy != "" && f.Code != messages.CodeUnauthorized:
		return unusable
	case !known:
		return explanation{what: "The call failed.", detail: true, next: onlyAsked, final: true}
	case f.Code == messages.CodeDeadline && f.Supervisor != "" && f.Attempt == 0:
		return unheard
	case f.Op != "tools/list":
		return e
	}
	switch f.Code {
	case messages.CodeInvalid, messages.CodeServerError, messages.CodeProtocol, messages.CodeDeadline:
		return unlisted
	}
	return e
}

// Explain tells a model why a call failed, in a few sentences: what happened, whether the tool may
// have run, whether to try again and when, and what state of the session is gone. There is a text
// for each code of package messages. The detail of the failure is quoted where it helps a model:
// for [messages.CodeInvalid], [messages.CodeRefused], [messages.CodeBusy], [messages.CodeRateLimited] and [messages.CodeServerError]. The failure of
// a listing before the call says that the server is away, and not that the call is wrong.
//
// err is the error of [Toolset.Call] or of another call. An error that is not a
// [*messages.Failure] and does not wrap one is quoted. The text of nil is empty.
func Explain(err error) string {
	var f *messages.Failure
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &f) || f == nil:
		return "The call failed: " + quoted(err.Error()) + " " + onlyAsked
	}
	if _, waits := errors.AsType[*Pending](err); waits {
		return pendingText
	}
	e := explanationOf(f)
	texts := []string{serverIn(e.what, f.Key.Server)}
	if e.detail && f.Detail != "" {
		texts[0] = strings.TrimSuffix(texts[0], ".") + ": " + quoted(f.Detail)
	}
	if now, is := errors.AsType[*redefined](f.Cause); is {
		texts = append(texts, "The parameters of the tool are now: "+string(now.schema))
	}
	ran := f.MayHaveRun && f.Op != "tools/list" // a listing before the call: the call did not run
	if ran {
		texts = append(texts, "The tool may have run. Check its effect before you repeat the call.")
	} else {
		texts = append(texts, "The tool did not run.")
	}
	if e.final || !ran {
		texts = append(texts, strings.ReplaceAll(e.next, "WHEN", when(f.RetryAfter, e.when)))
	}
	if f.Key.Server != "" && e.gone != "" {
		texts = append(texts, serverIn(e.gone, f.Key.Server))
	}
	return strings.Join(texts, " ")
}

// serverIn puts the name of a server in place of SERVER.
func serverIn(text, server string) string {
	name := "the server"
	if server != "" {
		name = fmt.Sprintf("server %q", server)
	}
	if rest, first := strings.CutPrefix(text, "SERVER"); first {
		text = strings.ToUpper(name[:1]) + name[1:] + rest
	}
	return strings.ReplaceAll(text, "SERVER", name)
}

// when renders the time until the next attempt. It rounds up to a second.
func when(after time.Duration, otherwise string) string {
	switch seconds := math.Ceil(after.Seconds()); {
	case after <= 0:
		return otherwise
	case seconds == 1:
		return " in 1 second"
	default:
		return fmt.Sprintf(" in %.0f seconds", seconds)
	}
}

// maxQuoted bounds a quoted detail, in bytes.
const maxQuoted = 2048

// quoted renders a detail on one line of visible characters that ends as a sentence does.
func quoted(detail string) string {
	detail = visible.Line(detail)
	if len(detail) > maxQuoted {
		return strings.ToValidUTF8(detail[:maxQuoted], "") + "…"
	}
	if strings.HasSuffix(detail, ".") || strings.HasSuffix(detail, "?") {
		return detail
	}
	return detail + "."
}

// Outcome converts the outcome of a call for a model: the result, or if err is not nil the text of
// [Explain], as an error unless the call is [Pending]. Of a result that is larger than
// [Config.MaxText] and [Config.MaxData] allow, the model gets a part; the result itself is not
// changed. If the session of the server is newer than that of the last outcome, the output also says
// that the state of the session is gone: as a part at the end of a result, or as a sentence of the
// explanation. It says so once for each session. Use Outcome for all calls of a conversation,
// because it compares each with the one before.
//
// An actor passes the [messages.ToolResult] that it received, or the [messages.Failure].
func (t *Toolset) Outcome(result *messages.ToolResult, err error) Output {
	if err != nil {
		text := Explain(err)
		var f *messages.Failure
		if errors.As(err, &f) && f != nil {
			said := explanations[f.Code].gone
			if gone := t.gone(f.Key, f.Supervisor, f.Generation); gone != "" && said != isGone && said != gone {
				text += " " + serverIn(gone, f.Key.Server)
			}
		}
		return Output{Parts: []Part{{Text: text}}, IsError: text != pendingText}
	}
	if result == nil {
		return Convert(nil)
	}
	out := t.fit(Convert(result.Result))
	if gone := t.gone(result.Key, result.Supervisor, result.Generation); gone != "" {
		note := "Note: SERVER has a new session since its last result. " + gone
		out.Parts = append(out.Parts, Part{Text: serverIn(note, result.Key.Server)})
	}
	return out
}

// sessions has the newest generation that a model was told of, by key and supervisor: the members of
// a cluster may count apart.
type sessions map[messages.Key]map[string]uint64

// gone notes the session of an outcome, by its supervisor and its generation. If it is newer than that of the last outcome of the key,
// gone returns what became of the state. If it has the generation that another member of a
// cluster had, that member may have left it, or both count apart.
func (t *Toolset) gone(key messages.Key, of string, generation uint64) string {
	if t == nil || t.ctx == nil || generation == 0 || t.listOf(key) == nil {
		return ""
	}
	key = key.Normal()
	t.mu.Lock()
	defer t.mu.Unlock()
	known, gone := t.told[key], isGone
	for supervisor, told := range known {
		if told == generation && supervisor != of {
			gone = mayBeGone
		}
	}
	if len(known) == 0 || generation <= known[of] {
		gone = ""
	}
	if known == nil {
		known = map[string]uint64{}
		t.told[key] = known
	}
	known[of] = max(known[of], generation)
	return gone
}
