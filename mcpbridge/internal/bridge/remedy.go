package bridge

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"syscall"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// unsupportedVersion is the text of the SDK's error for a protocol version that it does not know.
const unsupportedVersion = "unsupported protocol version"

// remedies are the mistakes that only a change of the configuration or of the credentials can correct, with the
// change. The first one that fits an error applies.
var remedies = []struct {
	fits   func(*mcpbridge.Error, *mcpbridge.Server) bool
	remedy string
}{
	{isNoFolder, "check the working directory (Dir, or cwd in a file)"},
	{hasNoRecords, "check the directory for the records of the cleanup (Records, or records in a file): only its user may access it"},
	{isCommandLine, "put the arguments into args: command is the name or the path of the program alone"},
	{isNoProgram, "check command: it is looked up in PATH, or is the path of a program that may be executed"},
	{isQuestionOfOldProtocol, "set protocolVersion to 2025-11-25, or let the tool return InputRequests"},
	{isUnsupportedProtocol, "update the server or this program, or set protocolVersion in a file"},
	{hasEnded, "check its command, arguments and environment: it ended before it spoke MCP"},
	{isOutput, "check its command and arguments: is this an MCP server that speaks over stdio?"},
	{isUnknownHost, "check the host in its URL"},
	{isBadCertificate, "check the certificate of the server: its host is that of its URL, and its authority is one that the system trusts, or HTTPClient in Go"},
	{isPlain, "the server does not encrypt: its URL has to begin with http"},
	{hasStatus(http.StatusProxyAuthRequired), "the proxy wants credentials: put them into the URL in HTTP_PROXY or HTTPS_PROXY"},
	{isRefusedLogin, "log in, or give other credentials: a header, or Auth in Go"},
	{isRefusedHeader, "check the credentials in its headers"},
	{isWithoutCredentials, "give credentials: a header such as Authorization, or Auth in Go"},
	{isRedirect, "give the URL of the server itself"},
	{isAnotherProgram, "check its URL: is it the server's MCP endpoint?"},
}

// remedyFor returns what to change after an error, or nothing if another attempt may succeed. What the credentials say
// themselves comes first.
func remedyFor(e *mcpbridge.Error, config *mcpbridge.Server) string {
	if e.Remedy != "" {
		return e.Remedy
	}
	for _, mistake := range remedies {
		if mistake.fits(e, config) {
			return mistake.remedy
		}
	}
	return ""
}

func isNoFolder(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.Dir != "" && strings.HasPrefix(e.Detail, "working directory: ")
}

// hasNoRecords is false if the system has too many open files, or no space.
func hasNoRecords(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.Cleanup.Command != "" && strings.HasPrefix(e.Detail, "cleanup.records: ") &&
		!errors.Is(e.Err, syscall.EMFILE) && !errors.Is(e.Err, syscall.ENFILE) && !errors.Is(e.Err, syscall.ENOSPC)
}

// isNoProgram is false if the system has too many processes or open files.
func isNoProgram(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.Command != "" && (errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, exec.ErrDot) ||
		errors.Is(e.Err, fs.ErrNotExist) || errors.Is(e.Err, fs.ErrPermission) || errors.Is(e.Err, syscall.ENOEXEC))
}

// isCommandLine is true if there is no such program, and its name seems to contain arguments.
func isCommandLine(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return isNoProgram(e, config) && strings.ContainsAny(config.Command, " \t")
}

// isQuestionOfOldProtocol is true if a server of the Go SDK that speaks 2026-07-28 wanted to send a
// request, such as an elicitation.
func isQuestionOfOldProtocol(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	return e.Class == mcpbridge.ServerError && strings.Contains(e.Detail, "cannot be sent while serving a request on protocol version")
}

func isUnsupportedProtocol(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	return e.Class == mcpbridge.Protocol && strings.Contains(e.Detail, unsupportedVersion)
}

// hasEnded is true if the process of the server ended instead of answering. The supervisor drops the remedy if the server
// has answered before.
func hasEnded(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.Command != "" && e.Server == mcpbridge.Strange && e.Session == mcpbridge.Broken &&
		(e.Class == mcpbridge.Lost || e.Class == mcpbridge.NotSent)
}

// isOutput is also true of a program that prints its input. Then the SDK gets its own initialize, and refuses it.
func isOutput(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.Command != "" && (e.Class == mcpbridge.Protocol || e.Code == rpc.CodeMethodNotFound)
}

func isUnknownHost(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	var name *net.DNSError
	return errors.As(e.Err, &name) && name.IsNotFound
}

func isBadCertificate(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(e.Err, &certificate)
}

func isPlain(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	var record tls.RecordHeaderError
	return errors.As(e.Err, &record) || errors.Is(e.Err, http.ErrSchemeMismatch)
}

func hasStatus(status int) func(*mcpbridge.Error, *mcpbridge.Server) bool {
	return func(e *mcpbridge.Error, _ *mcpbridge.Server) bool { return e.Status == status }
}

func isRefusedLogin(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return e.Class == mcpbridge.Unauthorized && config.Auth != nil
}

func isRefusedHeader(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return e.Class == mcpbridge.Unauthorized && len(config.Headers) > 0
}

func isWithoutCredentials(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	u, err := url.Parse(config.URL)
	return e.Class == mcpbridge.Unauthorized && (err != nil || u.User == nil)
}

func isRedirect(e *mcpbridge.Error, _ *mcpbridge.Server) bool {
	return e.Status >= 300 && e.Status < 400
}

// isAnotherProgram is true of answers that no MCP server gives. A server error may be an outage, unless it is 501, with
// which a web server refuses all POSTs.
func isAnotherProgram(e *mcpbridge.Error, config *mcpbridge.Server) bool {
	return config.URL != "" && e.Server == mcpbridge.Strange &&
		(e.Class != mcpbridge.ServerError || e.Status == http.StatusNotImplemented)
}
