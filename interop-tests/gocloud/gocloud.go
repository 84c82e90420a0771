// Package gocloud pins the module whose tests `run` runs.
package gocloud

import _ "gocloud.dev/pubsub/azuresb"
