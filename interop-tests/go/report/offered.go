package main

import "os"

// notOffered are the scenarios for which the SDK has no call, and what is missing.
var notOffered = func() map[string]string {
	notes := map[string]string{}
	for note, scenarios := range map[string][]string{
		"no way to sign in but by a token on $cbs":                     {"S05", "S291", "S292"},
		"tokens are put by the SDK itself, once for each link":         {"S06", "S293", "S294", "S297", "S298", "S299"},
		"tokens are renewed by the SDK itself, at times of its own":    {"S295"},
		"no pre-settled sending":                                       {"S14"},
		"no renewal by itself":                                         {"S29", "S112"},
		"no requests of one's own to the management node":              {"S68", "S69", "S71", "S137", "S171"},
		"no batch delete":                                              {"S70"},
		"no way to cut a connection without detaching":                 {"S114"},
		"no prefetch: credit is given as messages are asked for":       {"S134", "S313"},
		"the table of rights is about links and requests made by hand": {"S296"},
		"no tracing of its own":                                        {"S325"},
		"no transactions": {
			"S231", "S232", "S233", "S234", "S235", "S236", "S237", "S238", "S239", "S240", "S241", "S242", "S243",
			"S244", "S245", "S246", "S247", "S248", "S249",
		},
	} {
		for _, each := range scenarios {
			notes[each] = note
		}
	}
	if os.Getenv("INTEROP_DOOR") != "" {
		for _, each := range []string{"S301", "S302", "S303", "S304", "S305", "S306", "S307"} {
			notes[each] = "what stands between knows AMQP by TCP only: see go"
		}
	}
	return notes
}()
