// Command report reads what `go test -json` prints, and prints one line for each scenario, the reason below a
// failure, and the closing line that the runner reads. A test that is skipped has failed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// event is one line of `go test -json`; what is not read here is left out.
type event struct {
	Action  string
	Test    string
	Output  string
	Elapsed float64
}

func main() {
	passed, failed, broken := 0, 0, false
	// What a test said, kept until it is known whether it failed.
	said := map[string][]string{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var each event
		if json.Unmarshal(lines.Bytes(), &each) != nil {
			fmt.Println(lines.Text())
			continue
		}
		switch each.Action {
		case "output", "build-output":
			said[each.Test] = append(said[each.Test], each.Output)
		case "pass", "fail", "skip":
			isFailure := each.Action != "pass"
			switch {
			case each.Test == "":
				broken = broken || isFailure
			case isFailure:
				failed++
			default:
				passed++
			}
			tell(each, isFailure, said[each.Test])
			delete(said, each.Test)
		}
	}
	// A package that does not compile, or a panic, fails without a test of its own.
	if broken && failed == 0 {
		failed = 1
		fmt.Print(strings.Join(said[""], ""))
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 || lines.Err() != nil {
		os.Exit(1)
	}
}

func tell(each event, isFailure bool, said []string) {
	if each.Test != "" {
		word := "ok  "
		if isFailure {
			word = "FAIL"
		}
		name := strings.ReplaceAll(strings.TrimPrefix(each.Test, "Test"), "_", " ")
		fmt.Printf("%s  %s (%.0f ms)\n", word, name, each.Elapsed*1000)
	}
	if !isFailure {
		return
	}
	for _, line := range said {
		if !strings.HasPrefix(strings.TrimSpace(line), "=== ") {
			fmt.Print("      ", line)
		}
	}
}
