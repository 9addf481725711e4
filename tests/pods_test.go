package tests

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
)

// balanced returns a handler that passes each request to the next of the given handlers,
// like a load balancer that does not know about sessions. If cookie is not empty, it is the
// name of a cookie that the handler sets: requests with the cookie go to the pod that set
// it.
func balanced(cookie string, pods ...http.Handler) http.Handler {
	var turn atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookie == "" {
			pods[int(turn.Add(1))%len(pods)].ServeHTTP(w, r)
			return
		}
		if sent, err := r.Cookie(cookie); err == nil {
			if n, err := strconv.Atoi(sent.Value); err == nil && n >= 0 && n < len(pods) {
				pods[n].ServeHTTP(w, r)
				return
			}
		}
		n := int(turn.Add(1)) % len(pods)
		w.Header().Add("Set-Cookie", fmt.Sprintf("%s=%d; Path=/; HttpOnly", cookie, n))
		pods[n].ServeHTTP(w, r)
	})
}
