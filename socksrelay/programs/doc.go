// Package programs tests the command socksrelay with programs that are not Go: curl and Chromium. It is a module of its
// own because the library's tests need nothing but Go. A program that is missing is a failure, not a skip.
package programs
