"""Conan recipe of the C++ client, header-only: conan create deploy/conan"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.files import copy, load


class LightqConan(ConanFile):
    name = "lightq"
    description = "C++ client of the message broker LightQ, header-only"
    license = "Apache-2.0"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def _tree(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._tree(), "include/lightq/version.hpp"))
        self.version = re.search(r'version_text = "([0-9.]+)"', text).group(1)

    def export_sources(self):
        copy(self, "include/*", self._tree(), self.export_sources_folder)
        copy(self, "src/compiled/source.cpp", self._tree(), self.export_sources_folder)
        copy(self, "LICENSE", self._tree(), self.export_sources_folder)

    def requirements(self):
        self.requires("cppzmq/4.10.0")
        self.requires("lz4/1.10.0")
        self.requires("nlohmann_json/3.11.3")
        self.requires("openssl/[>=3 <4]")
        self.requires("zstd/1.5.7")

    def validate(self):
        check_min_cppstd(self, 20)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "*.hpp", os.path.join(self.source_folder, "include"), os.path.join(self.package_folder, "include"))
        copy(self, "source.cpp", os.path.join(self.source_folder, "src/compiled"),
             os.path.join(self.package_folder, "include/lightq"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "lightq")
        self.cpp_info.set_property("cmake_target_name", "lightq::client")
        self.cpp_info.set_property("pkg_config_name", "lightq")
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
