// Package admission decides which sessions may be open: it keeps the quotas, the order of eviction, and
// what is known of servers that are down. It takes facts and returns decisions. It sends nothing, and
// knows no actors: what stands for a session is a type parameter.
package admission
