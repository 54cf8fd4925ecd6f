// Parts of Kubernetes alone, by the name that this program is called by. Those of kube-scheduler read
// one case a line as JSON, and write the answer as one line.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

var parts = map[string]func() error{
	"device-metadata": readMetadata,
	"dra-allocator":   func() error { return answerAll(solve) },
	"filter-plugins":  func() error { return answerAll(filter) },
}

func answerAll[Question, Answer any](answer func(Question) Answer) error {
	answers := json.NewEncoder(os.Stdout)
	for questions := json.NewDecoder(os.Stdin); questions.More(); {
		var asked Question
		if err := questions.Decode(&asked); err != nil {
			return err
		}
		if err := answers.Encode(answer(asked)); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	run, known := parts[filepath.Base(os.Args[0])]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no such part\n", os.Args[0])
		os.Exit(2)
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
