package redact

import (
	"bytes"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strings"
)

// withForms returns secrets, together with the forms in which a server may have written
// them: escaped for JSON, for HTML or for a URL.
func withForms(secrets []string) []string {
	all := slices.Clone(secrets)
	for _, s := range secrets {
		if !strings.ContainsFunc(s, isEscaped) {
			continue
		}
		for _, escape := range escapes {
			if form := escape(s); form != s {
				all = append(all, form)
			}
		}
	}
	return all
}

// isEscaped reports whether a character may be escaped.
func isEscaped(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("-._~", r)
}

var escapes = []func(string) string{
	func(s string) string { return inJSON(s, false) },
	func(s string) string { return inJSON(s, true) },
	func(s string) string { return strings.ReplaceAll(inJSON(s, false), "/", `\/`) }, // as PHP
	html.EscapeString,
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;", "+", "&#43;").Replace, // as html/template
	strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#x27;").Replace,             // as Python
	url.QueryEscape,
	url.PathEscape,
	inURL, // as encodeURIComponent, and Python
	func(s string) string { return lowerHex(url.QueryEscape(s)) },
	func(s string) string { return lowerHex(inURL(s)) },
}

// inJSON returns a text as it stands in a string of JSON. With html, the characters of tags
// are escaped as well.
func inJSON(s string, html bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(html)
	if enc.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

// inURL returns a text with all characters escaped that have a meaning in a URL, and %20 for
// a space.
func inURL(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// lowerHex returns an escaped text with the digits of its escapes in lower case.
func lowerHex(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			b.WriteString(strings.ToLower(s[i : i+3]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
