package lightq

// Version is the version of this client.
const Version = "0.1.0"
