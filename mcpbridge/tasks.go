package mcpbridge

// TasksExtension is the name of the extension by which a server may turn a call into a task (SEP-2663). Declare it
// with [mcp.ClientCapabilities.AddExtension]: then the call is followed until its task is over.
const TasksExtension = "io.modelcontextprotocol/tasks"
