//! Tests with a server on this machine.
