package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func small(t *testing.T) settings {
	return settings{directory: t.TempDir(), segmentBytes: 16384, segmentMessages: 100, mappedSegments: 3}
}

func TestEveryQueueGivesBackWhatItGot(t *testing.T) {
	for name := range openers {
		opened, err := open(name, small(t))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, count := range []int{1, 500} {
			made := newMessages(1000)
			if err := appendMessages(opened, made, 0, count); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := readMessages(opened, made, 0, count); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := opened.dequeue(); err == nil {
				t.Errorf("%s gave a message that nobody appended", name)
			}
		}
		if err := opened.close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAWrongByteIsNoticed(t *testing.T) {
	for name := range openers {
		chosen := small(t)
		opened, err := open(name, chosen)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		made := newMessages(1000)
		if err := appendMessages(opened, made, 0, 10); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		flipAByteOfEachFile(t, chosen.directory)
		if readMessages(opened, made, 0, 10) == nil {
			t.Errorf("%s: a wrong byte passed", name)
		}
		opened.close()
	}
}

func flipAByteOfEachFile(t *testing.T, directory string) {
	var files []string
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s", directory)
	}
	for _, path := range files {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var one [1]byte
		if _, err := file.ReadAt(one[:], 5000); err == nil {
			one[0] ^= 1
			if _, err := file.WriteAt(one[:], 5000); err != nil {
				t.Fatal(err)
			}
		}
		file.Close()
	}
}
