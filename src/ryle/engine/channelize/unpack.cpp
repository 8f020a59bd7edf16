// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/channelize/unpack.hpp"

#include <cstring>

namespace ryle::channelize::detail {
namespace {

using U16x8 = std::uint16_t __attribute__((vector_size(16)));
using I16x8 = std::int16_t __attribute__((vector_size(16)));
using U8x16 = std::uint8_t __attribute__((vector_size(16)));

U16x8 load(const void* p) {
  U16x8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

/// Two's-complement bytes (re low, im high) from words that hold two codes of 5 or 8 bits.
struct WordDecoder {
  explicit WordDecoder(const SampleLayout& layout) {
    const bool five = layout.format == SampleFormat::ci5;
    const int bits = five ? 5 : 8;
    re_up = static_cast<std::uint16_t>(16 - bits - (five ? layout.re_shift : 0));
    im_up = static_cast<std::uint16_t>(16 - bits - (five ? layout.im_shift : 8));
    down = static_cast<std::uint16_t>(16 - bits);
    // Offset binary is two's complement with the top bit of the code inverted.
    flip = layout.encoding == Encoding::offset_binary ? 0x8000 : 0;
  }
  std::uint16_t one(std::uint16_t w) const {
    const auto re = static_cast<std::int16_t>(static_cast<std::uint16_t>(w << re_up) ^ flip);
    const auto im = static_cast<std::int16_t>(static_cast<std::uint16_t>(w << im_up) ^ flip);
    return static_cast<std::uint16_t>(((re >> down) & 255) | ((im >> down) << 8));
  }
  U16x8 eight(U16x8 w) const {
    const auto re = reinterpret_cast<I16x8>((w << re_up) ^ flip) >> static_cast<std::int16_t>(down);
    const auto im = reinterpret_cast<I16x8>((w << im_up) ^ flip) >> static_cast<std::int16_t>(down);
    return (reinterpret_cast<U16x8>(re) & static_cast<std::uint16_t>(255)) |
           (reinterpret_cast<U16x8>(im) << 8);
  }
  std::uint16_t re_up, im_up, down, flip;
};

/// 8 x 8 transpose of 16-bit words, three rounds of interleaving.
void transpose(U16x8 (&r)[8]) {
  const auto low = [](U16x8 a, U16x8 b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  };
  const auto high = [](U16x8 a, U16x8 b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  };
  for (int round = 0; round < 3; ++round) {
    U16x8 t[8];
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = low(r[i], r[i + 4]);
      t[2 * i + 1] = high(r[i], r[i + 4]);
    }
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }
}

template <class Read>
void to_floats(std::int64_t count, float* out, const Read& read) {
  for (std::int64_t i = 0; i < count; ++i) read(i, out);
}

}  // namespace

Unpacker::Unpacker(const SampleLayout& layout, const KernelTable* kernel)
    : layout_(layout),
      kernel_(kernel),
      complex_(is_complex(layout.format)),
      part_bits_(bits_per_sample(layout.format)) {
  const int bits = bits_per_sample(layout.format);
  if (complex_) part_bits_ /= 2;
  if (layout.format == SampleFormat::ci5) part_bits_ = 5;
  floats_ = part_bits_ > 8;
  sample_bytes_ = (complex_ ? 2 : 1) * (floats_ ? 4 : 1);
  const bool packed = layout.sample_stride_bits == bits;
  const bool bytes = layout.format == SampleFormat::i8 || layout.format == SampleFormat::ci8;
  const bool float_stream =
      layout.format == SampleFormat::f32 || layout.format == SampleFormat::cf32;
  direct_ = packed && ((bytes && layout.encoding == Encoding::twos_complement) || float_stream);
  const bool shares_lines =
      layout.input_stride_bits > 0 && layout.input_stride_bits < layout.sample_stride_bits;
  group_ = shares_lines ? 64 * 8 / layout.input_stride_bits : 1;
  if (group_ < 1) group_ = 1;
  if (group_ > 32) group_ = 32;
  if (part_bits_ < 5) {
    const int per_byte = 8 / part_bits_;
    SampleLayout one = layout;
    one.sample_stride_bits = bits;
    one.input_stride_bits = 0;
    for (int value = 0; value < 256; ++value) {
      const auto byte = static_cast<unsigned char>(value);
      for (int part = 0; part < per_byte; ++part) {
        const cf64 x = decode_sample(one, &byte, 0, complex_ ? part / 2 : part);
        table_.push_back(static_cast<std::int8_t>(complex_ && part % 2 == 1 ? x.imag() : x.real()));
      }
    }
  }
}

const std::byte* Unpacker::direct(const void* samples, std::int64_t input) const {
  return static_cast<const std::byte*>(samples) + input * layout_.input_stride_bits / 8;
}

bool Unpacker::interleaved() const {
  return (layout_.format == SampleFormat::ci5 || layout_.format == SampleFormat::ci8) &&
         layout_.input_stride_bits == 16;
}

void Unpacker::arrange(const KernelPlan& plan, const void* samples, std::int64_t input,
                       std::int64_t origin, std::int64_t begin, std::int64_t end, std::byte* out,
                       std::int64_t cell_bytes) const {
  const WordDecoder decode(layout_);
  const KernelWords words{decode.re_up, decode.im_up, decode.down, decode.flip};
  const std::int64_t stride = layout_.sample_stride_bits / 8;
  const auto* bytes = static_cast<const unsigned char*>(samples) + 2 * input + origin * stride;
  kernel_->arrange_words(plan, words, bytes, stride, begin, end, out, cell_bytes);
}

void Unpacker::unpack(const void* samples, std::int64_t input, std::int64_t n_inputs,
                      std::int64_t from, std::int64_t count, std::byte* out,
                      std::int64_t row_bytes) const {
  const auto* bytes = static_cast<const unsigned char*>(samples);
  const bool words = layout_.format == SampleFormat::ci5 || layout_.format == SampleFormat::ci8;
  std::int64_t done = 0;
  if (words && layout_.input_stride_bits == 16 && n_inputs >= 8) {
    done = n_inputs / 8 * 8;
    const unsigned char* first = bytes + 2 * input + from * (layout_.sample_stride_bits / 8);
    unpack_interleaved(first, done, count, out, row_bytes);
  }
  for (std::int64_t p = done; p < n_inputs; ++p)
    unpack_one(bytes, input + p, from, count, out + p * row_bytes);
}

void Unpacker::unpack_interleaved(const unsigned char* bytes, std::int64_t n_inputs,
                                  std::int64_t count, std::byte* out,
                                  std::int64_t row_bytes) const {
  const WordDecoder decode(layout_);
  const std::int64_t stride = layout_.sample_stride_bits / 8;
  std::int64_t first = 0;
  std::int64_t t = 0;
  if (kernel_ != nullptr) {
    const KernelWords words{decode.re_up, decode.im_up, decode.down, decode.flip};
    const std::int64_t tile = kernel_->n_word_inputs;
    for (; first + tile <= n_inputs; first += tile) {
      kernel_->unpack_words(words, bytes + 2 * first, stride, count, out + first * row_bytes,
                            row_bytes);
    }
  }
  for (; t + 8 <= count; t += 8) {
    for (std::int64_t p = first; p < n_inputs; p += 8) {
      U16x8 r[8];
      for (int i = 0; i < 8; ++i) r[i] = decode.eight(load(bytes + (t + i) * stride + 2 * p));
      transpose(r);
      for (int i = 0; i < 8; ++i) std::memcpy(out + (p + i) * row_bytes + 2 * t, &r[i], 16);
    }
  }
  for (; t < count; ++t) {
    for (std::int64_t p = 0; p < n_inputs; ++p) {
      std::uint16_t word;
      std::memcpy(&word, bytes + t * stride + 2 * p, 2);
      word = decode.one(word);
      std::memcpy(out + p * row_bytes + 2 * t, &word, 2);
    }
  }
}

void Unpacker::unpack_words(const unsigned char* bytes, std::int64_t stride, std::int64_t count,
                            std::int8_t* out) const {
  const WordDecoder decode(layout_);
  std::int64_t t = 0;
  if (stride == 2) {
    for (; t + 8 <= count; t += 8) {
      const U16x8 v = decode.eight(load(bytes + 2 * t));
      std::memcpy(out + 2 * t, &v, 16);
    }
  }
  for (; t < count; ++t) {
    std::uint16_t word;
    std::memcpy(&word, bytes + t * stride, 2);
    word = decode.one(word);
    std::memcpy(out + 2 * t, &word, 2);
  }
}

void Unpacker::unpack_small(const unsigned char* bytes, std::int64_t bit, std::int64_t count,
                            std::int8_t* out) const {
  const int parts = complex_ ? 2 : 1;
  const int sample_bits = parts * part_bits_;
  const int per_byte = 8 / part_bits_;
  const std::int8_t* table = table_.data();
  const auto one = [&](std::int64_t at) {
    const std::int8_t* entry = table + bytes[at >> 3] * per_byte + (at & 7) / part_bits_;
    for (int part = 0; part < parts; ++part) *out++ = entry[part];
  };
  std::int64_t t = 0;
  if (layout_.sample_stride_bits == sample_bits) {
    for (; t < count && (bit & 7) != 0; ++t, bit += sample_bits) one(bit);
    const std::int64_t whole = (count - t) * sample_bits / 8;
    const unsigned char* source = bytes + (bit >> 3);
    const auto expand = [&]<int kParts>() {
      for (std::int64_t i = 0; i < whole; ++i)
        std::memcpy(out + kParts * i, table + kParts * source[i], kParts);
    };
    if (per_byte == 8) {
      expand.template operator()<8>();
    } else if (per_byte == 4) {
      expand.template operator()<4>();
    } else {
      expand.template operator()<2>();
    }
    out += whole * per_byte;
    t += whole * 8 / sample_bits;
    bit += whole * 8;
  }
  for (; t < count; ++t, bit += layout_.sample_stride_bits) one(bit);
}

void Unpacker::unpack_one(const unsigned char* bytes, std::int64_t input, std::int64_t from,
                          std::int64_t count, std::byte* out) const {
  const std::int64_t bit = input * layout_.input_stride_bits + from * layout_.sample_stride_bits;
  const std::int64_t stride = layout_.sample_stride_bits / 8;
  auto* codes = reinterpret_cast<std::int8_t*>(out);
  auto* values = reinterpret_cast<float*>(out);
  // A sample of 1, 2 or 4 bits that straddles bytes, or an odd stride, goes the textbook way.
  const bool aligned = bits_per_sample(layout_.format) > 8 ||
                       (bit % bits_per_sample(layout_.format) == 0 &&
                        layout_.sample_stride_bits % bits_per_sample(layout_.format) == 0);
  const unsigned char* source = bytes + bit / 8;
  const std::int16_t half = layout_.encoding == Encoding::offset_binary ? -32768 : 0;
  switch (layout_.format) {
    case SampleFormat::i8:
      for (std::int64_t t = 0; t < count; ++t)
        codes[t] = static_cast<std::int8_t>(source[t * stride] ^ (half ? 128 : 0));
      return;
    case SampleFormat::ci5:
    case SampleFormat::ci8:
      return unpack_words(source, stride, count, codes);
    case SampleFormat::i16:
    case SampleFormat::ci16: {
      const int parts = complex_ ? 2 : 1;
      return to_floats(count, values, [&](std::int64_t t, float* v) {
        for (int k = 0; k < parts; ++k) {
          std::uint16_t code;
          std::memcpy(&code, source + t * stride + 2 * k, 2);
          v[parts * t + k] = static_cast<float>(
              static_cast<std::int16_t>(code ^ static_cast<std::uint16_t>(half)));
        }
      });
    }
    case SampleFormat::f32:
      return to_floats(count, values, [&](std::int64_t t, float* v) {
        std::memcpy(v + t, source + t * stride, 4);
      });
    case SampleFormat::cf32:
      return to_floats(count, values, [&](std::int64_t t, float* v) {
        std::memcpy(v + 2 * t, source + t * stride, 8);
      });
    case SampleFormat::cf16:
      return to_floats(count, values, [&](std::int64_t t, float* v) {
        const cf64 x = decode_sample(layout_, bytes, input, from + t);
        v[2 * t] = static_cast<float>(x.real());
        v[2 * t + 1] = static_cast<float>(x.imag());
      });
    default:
      break;
  }
  if (aligned) return unpack_small(bytes, bit, count, codes);
  for (std::int64_t t = 0; t < count; ++t) {
    const cf64 x = decode_sample(layout_, bytes, input, from + t);
    *codes++ = static_cast<std::int8_t>(x.real());
    if (complex_) *codes++ = static_cast<std::int8_t>(x.imag());
  }
}

}  // namespace ryle::channelize::detail
