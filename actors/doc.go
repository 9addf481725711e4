// Package actors declares what user code can implement for the actors of a supervisor: a
// [Strategy] decides about sessions that have failed, and an [Interceptor] wraps every
// operation. Both are fields of the configuration in package supervisor.
//
// The actors themselves are in an internal package.
package actors
