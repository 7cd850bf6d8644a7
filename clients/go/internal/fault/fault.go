// Package fault has the errors of the client.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Error is an error of the client or the broker.
type Error struct {
	Code      string // a word of docs/protocol.md or docs/session.md, such as topic_not_found
	Text      string // a sentence for people
	Retryable bool   // the same call may succeed later, without a change of the program
	Cause     error  // may be nil
}

// Kinds of errors, for errors.Is.
var (
	ErrNotFound        = errors.New("there is no such topic, group, user or schedule")
	ErrAlreadyExists   = errors.New("the name is in use")
	ErrUnauthorized    = errors.New("the credentials do not permit this")
	ErrRefused         = errors.New("the broker refused it")
	ErrInvalidArgument = errors.New("an argument is out of its range")
	ErrNotSupported    = errors.New("the broker or the topic cannot do this")
	ErrFenced          = errors.New("another process has taken over the producer or the cursor")
	ErrRevoked         = errors.New("the broker has taken the message back")
	ErrInDoubt         = errors.New("messages may be stored or not")
	ErrTimeout         = errors.New("the time of a call has passed")
	ErrClosed          = errors.New("the object is closed")
	ErrConnectionLost  = errors.New("there is no connection to the broker")
	ErrProtocol        = errors.New("the other side does not speak the protocol")
	ErrInternal        = errors.New("the broker has an internal error")
)

var kinds = map[string]error{
	"topic_not_found": ErrNotFound, "topic_deleted": ErrNotFound, "group_not_found": ErrNotFound, "user_not_found": ErrNotFound,
	"schedule_not_found": ErrNotFound, "endpoint_not_found": ErrNotFound,
	"topic_already_exists": ErrAlreadyExists, "user_already_exists": ErrAlreadyExists,
	"invalid_argument": ErrInvalidArgument, "invalid_request": ErrInvalidArgument, "invalid_cmd": ErrInvalidArgument,
	"incarnation_changed": ErrInvalidArgument,
	"not_supported":       ErrNotSupported, "unsupported_version": ErrNotSupported,
	"limit_reached": ErrRefused, "no_space": ErrRefused, "too_large": ErrRefused, "busy": ErrRefused, "io_error": ErrRefused,
	"corrupt": ErrRefused, "shutting_down": ErrRefused, "group_in_use": ErrRefused, "request_too_large": ErrRefused,
	"address_in_use": ErrRefused, "out_of_sequence": ErrRefused,
	"unauthorized_access": ErrUnauthorized, "fenced": ErrFenced, "unknown_producer": ErrInDoubt, "in_doubt": ErrInDoubt,
	"revoked": ErrRevoked,
	"idle":    ErrConnectionLost, "invalid_frame": ErrProtocol, "timeout": ErrTimeout, "cancelled": ErrTimeout, "closed": ErrClosed,
}

var retryable = map[string]bool{
	"limit_reached": true, "no_space": true, "busy": true, "io_error": true, "shutting_down": true, "out_of_sequence": true,
	"idle": true, "invalid_frame": true, "timeout": true,
}

// New makes an error for a word of the broker, or of the client.
func New(code, format string, arguments ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, arguments...), Retryable: retryable[code]}
}

// Lost makes an error for a connection that failed or ended. The cause may be nil.
func Lost(cause error, format string, arguments ...any) *Error {
	made := &Error{Code: "io_error", Text: fmt.Sprintf(format, arguments...), Retryable: true, Cause: cause}
	if cause == nil {
		made.Cause = ErrConnectionLost
		return made
	}
	made.Text += ": " + cause.Error()
	made.Cause = lost{cause}
	return made
}

// lost is a cause that is also ErrConnectionLost.
type lost struct{ error }

func (l lost) Is(target error) bool { return target == ErrConnectionLost }
func (l lost) Unwrap() error        { return l.error }

// Violation makes an error for bytes that the protocol does not allow.
func Violation(format string, arguments ...any) *Error {
	return New("invalid_frame", format, arguments...)
}

// Ended makes the error of a call that ended with its context. `last` is the last failure to connect, or nil.
func Ended(ctx context.Context, last error, format string, arguments ...any) *Error {
	made := New("timeout", format, arguments...)
	if errors.Is(ctx.Err(), context.Canceled) {
		made.Code, made.Retryable = "cancelled", false
	}
	made.Cause = ctx.Err()
	if last != nil {
		made.Text += "; the last failure: " + last.Error()
	}
	return made
}

// Error returns the code and the sentence.
func (e *Error) Error() string {
	if e.Text == "" {
		return "lightq: " + e.Code
	}
	return "lightq: " + e.Code + ": " + e.Text
}

// Is tells whether the error is of a kind such as ErrRevoked.
func (e *Error) Is(target error) bool {
	kind, known := kinds[e.Code]
	if !known {
		kind = ErrInternal
	}
	return target == kind || kind == ErrProtocol && target == ErrConnectionLost
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf returns the code of an error; internal if it is none of the client's.
func CodeOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Code
	}
	return "internal"
}
