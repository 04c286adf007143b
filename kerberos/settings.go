package kerberos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	krb5 "github.com/jcmturner/gokrb5/v8/config"
)

// settings reads krb5.conf.
func settings(file string) (*krb5.Config, error) {
	var text strings.Builder
	if err := include(&text, file, 0); err != nil {
		return nil, err
	}
	var conf *krb5.Config
	err := guarded(func() (err error) {
		conf, err = krb5.NewFromString(text.String())
		return err
	})
	if unsupported := (krb5.UnsupportedDirective{}); errors.As(err, &unsupported) { // which the rest does not depend on
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return conf, nil
}

const (
	maxSettings = 1 << 20
	maxIncludes = 8 // one in the other
)

// included are the files of a folder that count: others are a package manager's or an editor's.
var included = regexp.MustCompile(`^([A-Za-z0-9_-]+|[^.].*\.conf)$`)

// include appends a file, with what it includes in its place: the library passes over include and includedir.
func include(out *strings.Builder, file string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: included too deeply", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if out.Len()+len(text) > maxSettings {
		return fmt.Errorf("%s: more than %d bytes of settings", file, maxSettings)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "include":
			err = include(out, words[1], depth+1)
		case len(words) == 2 && words[0] == "includedir":
			err = includeFolder(out, words[1], depth+1)
		default:
			out.WriteString(strings.TrimRight(line, "\r\n") + "\n")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func includeFolder(out *strings.Builder, folder string, depth int) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries { // by name
		if !e.IsDir() && included.MatchString(e.Name()) {
			if err := include(out, filepath.Join(folder, e.Name()), depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// askForModern asks for keys of the types that are served: in the order of the settings, and then for those that they, or the library, know nothing of.
func askForModern(conf *krb5.Config) {
	for _, list := range []*[]int32{&conf.LibDefaults.DefaultTktEnctypeIDs, &conf.LibDefaults.DefaultTGSEnctypeIDs} {
		*list = slices.DeleteFunc(*list, func(t int32) bool { return !modern(t) })
		for _, t := range modernTypes {
			if !slices.Contains(*list, t) {
				*list = append(*list, t)
			}
		}
	}
}
