// Package goamqp pins the module whose tests `run` runs.
package goamqp

import _ "github.com/Azure/go-amqp"
