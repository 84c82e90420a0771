// Command report reads what `go test -json` prints, and prints one line for each scenario, the reason below a
// failure, and the closing line that the runner reads. A test that is skipped has failed. Where JITNEY_WORK says where,
// it writes scenarios.tsv, the suite's part of the matrix.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	outcomes := outcomes{}
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
			outcomes.add(each.Test, isFailure)
			delete(said, each.Test)
		}
	}
	// A package that does not compile, or is ended from outside, fails without a test of its own, and some have no outcome.
	if broken && failed == 0 {
		failed = 1
		for _, test := range slices.Sorted(maps.Keys(said)) {
			fmt.Print(strings.Join(said[test], ""))
		}
	}
	if err := outcomes.write(os.Getenv("JITNEY_WORK")); err != nil {
		fmt.Println("no matrix:", err)
		failed++
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

// outcomes are those of the scenarios, by their numbers: whether one has failed.
type outcomes map[string]bool

var scenarios = regexp.MustCompile(`^Test((?:S\d+_)+)`)

// add takes down a test's outcome for the scenarios that its name begins with.
func (o outcomes) add(test string, failed bool) {
	if found := scenarios.FindStringSubmatch(test); found != nil {
		for _, each := range strings.Split(strings.TrimSuffix(found[1], "_"), "_") {
			o[each] = o[each] || failed
		}
	}
}

// write makes the file that the runner makes the matrix of, if there is a directory for it.
func (o outcomes) write(directory string) error {
	if directory == "" {
		return nil
	}
	var lines []string
	for _, each := range slices.Sorted(maps.Keys(o)) {
		word := "pass"
		if o[each] {
			word = "fail"
		}
		lines = append(lines, each+"\t"+word+"\t\n")
	}
	for _, each := range slices.Sorted(maps.Keys(notOffered)) {
		if _, ran := o[each]; !ran {
			lines = append(lines, each+"\tnot offered\t"+notOffered[each]+"\n")
		}
	}
	return os.WriteFile(filepath.Join(directory, "scenarios.tsv"), []byte(strings.Join(lines, "")), 0o644)
}
