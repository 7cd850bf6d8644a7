package lightq

import "lightq/internal/fault"

// Error is the type of all errors that the client makes. Its Code is a word of docs/protocol.md or docs/session.md, such as
// topic_not_found. Retryable: the same call may succeed later, without a change of the program.
type Error = fault.Error

// Kinds of errors, for errors.Is. The error of a call that ended with its context is also context.Canceled or context.DeadlineExceeded.
var (
	ErrNotFound        = fault.ErrNotFound
	ErrAlreadyExists   = fault.ErrAlreadyExists
	ErrUnauthorized    = fault.ErrUnauthorized
	ErrRefused         = fault.ErrRefused // a limit is reached, a disk is full, a message is too long
	ErrInvalidArgument = fault.ErrInvalidArgument
	ErrNotSupported    = fault.ErrNotSupported
	ErrFenced          = fault.ErrFenced
	ErrRevoked         = fault.ErrRevoked // the message goes to another consumer
	ErrInDoubt         = fault.ErrInDoubt // sending the messages again may store them twice
	ErrTimeout         = fault.ErrTimeout
	ErrClosed          = fault.ErrClosed
	ErrConnectionLost  = fault.ErrConnectionLost
	ErrProtocol        = fault.ErrProtocol
	ErrInternal        = fault.ErrInternal
)
