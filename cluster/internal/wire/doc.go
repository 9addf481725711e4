// Package wire is what crosses between the members of a cluster: the messages, as JSON.
//
// [Encode] and [Decode] take every message of package messages by its name on the wire, such as
// "call-tool", and every type that was given to [Register]. The names and the names of the fields
// do not change: the members of a cluster may run different versions of this module. A field that
// a member does not know is ignored.
//
// A message that has crossed is the message that was sent, with these exceptions:
//
//   - A deadline crosses as the time that is left, because clocks differ.
//   - A PID crosses as it is: only the member of its actor can use it.
//   - [messages.Failure.Cause] is dropped.
//   - The arguments of a tool, and the parameters of a custom method, that are neither a
//     map[string]any nor a [encoding/json.RawMessage] arrive as an encoding/json.RawMessage with their JSON.
//   - An encoding/json.RawMessage arrives compacted, with the characters that HTML treats specially
//     escaped. A time loses its location.
//   - A tool result without content arrives with an empty list, an elicitation without a mode with
//     the default one, and an answer to a sampling request without content as a refusal.
//   - Other values of type any arrive as encoding/json decodes JSON. A number that would lose
//     digits as a float64 arrives as an int64, a uint64 or an [encoding/json.Number]. Those of a content or a result
//     do not: the SDK decodes them, and it has read those of a server as float64, too.
package wire

// Version is the version of the format, and of all that members say to each other.
const Version = 2
